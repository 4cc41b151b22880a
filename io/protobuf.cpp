// The wire format's varints, tags and lengths.
#include "io/protobuf.h"

namespace bertrand::io {
namespace {

constexpr std::uint64_t kMostField = (1 << 29) - 1;

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

std::uint64_t tag_of(int field, WireType type) {
  return static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type);
}

}  // namespace

bool ProtoReader::next() {
  if (is_pending_) skip();
  if (rest_.empty()) return false;
  const std::uint64_t tag = read_varint();
  if (tag >> 3 == 0 || tag >> 3 > kMostField)
    fail(failure_, "{}: protobuf: expected a field number from 1 to {}, got {}", place_, kMostField, tag >> 3);
  field_ = static_cast<int>(tag >> 3);
  type_ = static_cast<int>(tag & 7);
  is_pending_ = true;
  return true;
}

std::uint64_t ProtoReader::varint() {
  is_pending_ = false;
  return read_varint();
}

std::string_view ProtoReader::bytes() { return take(read_varint()); }

std::uint64_t ProtoReader::read_varint() {
  if (const auto value = take_varint(rest_)) return *value;
  if (rest_.size() < kMostVarintBytes)
    fail(failure_, "{}: protobuf: expected a number, got the end of the message", place_);
  fail(failure_, "{}: protobuf: expected a number of at most {} bytes, got a longer one", place_, kMostVarintBytes);
}

std::string_view ProtoReader::take(std::uint64_t size) {
  is_pending_ = false;
  if (size > rest_.size())
    fail(failure_, "{}: protobuf: expected {} bytes, got {} to the end of the message", place_, size, rest_.size());
  const std::string_view bytes = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return bytes;
}

void ProtoReader::skip() {
  switch (type_) {
    case static_cast<int>(WireType::varint): varint(); return;
    case static_cast<int>(WireType::fixed64): take(8); return;
    case static_cast<int>(WireType::bytes): bytes(); return;
    case static_cast<int>(WireType::fixed32): take(4); return;
    default: fail(failure_, "{}: protobuf: expected a wire type 0, 1, 2 or 5, got {}", place_, type_);
  }
}

void ProtoReader::refuse_floats(std::size_t bytes) const {
  fail(failure_, "{}: protobuf: expected floats of 4 bytes, got {} bytes", place_, bytes);
}

void append_tag(std::string& out, int field, WireType type) { append_varint(out, tag_of(field, type)); }

void append_number(std::string& out, int field, std::uint64_t value) {
  append_tag(out, field, WireType::varint);
  append_varint(out, value);
}

void append_length(std::string& out, int field, std::size_t size) {
  append_tag(out, field, WireType::bytes);
  append_varint(out, size);
}

void append_bytes(std::string& out, int field, std::string_view bytes) {
  append_length(out, field, bytes.size());
  out.append(bytes);
}

void append_entry(std::string& out, int field, std::string_view key, std::string_view value) {
  std::string entry;
  append_bytes(entry, 1, key);
  append_bytes(entry, 2, value);
  append_bytes(out, field, entry);
}

void append_float(std::string& out, int field, float value) {
  append_tag(out, field, WireType::fixed32);
  append_fixed(out, value);
}

void append_double(std::string& out, int field, double value) {
  append_tag(out, field, WireType::fixed64);
  append_fixed(out, value);
}

std::size_t bytes_field_size(int field, std::size_t size) {
  return varint_size(tag_of(field, WireType::bytes)) + varint_size(size) + size;
}

}  // namespace bertrand::io
