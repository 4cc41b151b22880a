// Protocol buffers' wire format (https://protobuf.dev/programming-guides/encoding), read and written without schemas.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "io/error.h"
#include "io/little_endian.h"

namespace bertrand::io {

enum class WireType : int { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Reads the fields of one message in their order. A value that is not asked for is skipped. Trusts nothing: throws
/// Error for whatever is not well formed. The message must outlive the reader and what it returns.
///   while (reader.next())
///     if (reader.is(1, WireType::bytes)) name = reader.bytes();
class ProtoReader {
 public:
  /// `place` begins every message and must outlive the reader: <file>@<offset>.
  ProtoReader(std::string_view message, std::string_view place, Failure failure)
      : rest_(message), place_(place), failure_(failure) {}

  /// Goes to the next field; false at the end of the message.
  bool next();
  int field() const { return field_; }
  bool is(int field, WireType type) const { return field_ == field && type_ == static_cast<int>(type); }

  /// The field's value; each may be asked for once, and only if is() says so.
  std::uint64_t varint();
  std::string_view bytes();
  ProtoReader message() { return {bytes(), place_, failure_}; }
  template <class T>  // 4 or 8 bytes
  T fixed() {
    return load_fixed<T>(take(sizeof(T)).data());
  }

  /// Whether the field holds numbers of a repeated field, packed or one by one.
  bool has_varints(int field) const { return is(field, WireType::varint) || is(field, WireType::bytes); }
  bool has_floats(int field) const { return is(field, WireType::fixed32) || is(field, WireType::bytes); }
  /// Calls `take` with each of them.
  template <class Take>
  void each_varint(const Take& take) {
    if (type_ == static_cast<int>(WireType::varint)) return take(varint());
    for (ProtoReader packed = message(); !packed.rest_.empty();) take(packed.read_varint());
  }
  template <class Take>
  void each_float(const Take& take) {
    if (type_ == static_cast<int>(WireType::fixed32)) return take(fixed<float>());
    ProtoReader packed = message();
    if (packed.rest_.size() % sizeof(float) != 0) refuse_floats(packed.rest_.size());
    while (!packed.rest_.empty()) take(packed.fixed<float>());
  }

 private:
  std::uint64_t read_varint();
  std::string_view take(std::uint64_t size);
  void skip();
  [[noreturn]] void refuse_floats(std::size_t bytes) const;

  std::string_view rest_, place_;
  Failure failure_;
  int field_ = 0, type_ = 0;
  bool is_pending_ = false;  // the field's value is still to be read
};

void append_tag(std::string& out, int field, WireType type);

/// A whole field at the end of a message.
void append_number(std::string& out, int field, std::uint64_t value);
void append_bytes(std::string& out, int field, std::string_view bytes);
void append_float(std::string& out, int field, float value);
void append_double(std::string& out, int field, double value);
/// An entry of a map from names to bytes.
void append_entry(std::string& out, int field, std::string_view key, std::string_view value);
/// What comes before a field of `size` bytes that are appended next.
void append_length(std::string& out, int field, std::size_t size);
/// How many bytes append_bytes() appends.
std::size_t bytes_field_size(int field, std::size_t size);

}  // namespace bertrand::io
