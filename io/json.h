// The one door for JSON: a strict parser, a writer that never fails, and a reader of typed values whose messages name
// file and key.
#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/error.h"

namespace bertrand::io {

/// Objects keep the order of their keys. Access by key is a search through all keys: walk a large object with items(),
/// and build one with append().
using Json = nlohmann::ordered_json;

/// What becomes of a whole number that 64 bits do not hold.
enum class LongNumber {
  round,  ///< the nearest double: tokenizer_config.json says "no limit" so
  text,   ///< its digits, as a string: two of them that differ stay two
  refuse  ///< Error
};

/// Where JSON comes from, and what kind of failure it is if it is bad.
struct JsonSource {
  std::string name;  ///< begins every message: a file, or file:line
  Failure failure = Failure::model;
  LongNumber long_number = LongNumber::round;  ///< of parse_json()
};

/// Parses one value, in time linear in the text but for the search for keys. Throws Error naming source, line and byte:
/// a syntax error, invalid UTF-8, a NUL, also as \u0000, more than 64 levels of values in each other, a key that an
/// object has twice (parsers disagree on which counts), a number that no double holds.
Json parse_json(std::string_view text, const JsonSource& source);
/// The same; nothing if `text` is not such a value.
std::optional<Json> try_parse_json(std::string_view text);
/// parse_json() of a whole file, read by read_small_file() (io/input_files.h).
Json read_json(const std::filesystem::path& file);

/// Adds a key that `object` does not have yet, in constant time.
void append(Json& object, std::string key, Json value);

/// `json` as text, on one line or indented. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const Json& json, int indent = -1);
/// `json` as a message shows it: in ASCII, cut after 40 bytes.
std::string shown(const Json& json);

/// Typed values of one object. Every message is "<source>: <key>: expected …, got …".
class JsonReader {
 public:
  /// `place` is the key of the object within the file and a dot, or "" for the whole file. The object must outlive the
  /// reader. Throws Error if `json` is no object.
  JsonReader(const Json& json, JsonSource source, std::string place = "");

  struct Whole {
    std::int64_t least = 0, most = std::numeric_limits<std::int64_t>::max();
  };
  struct Real {
    double least = std::numeric_limits<double>::lowest(), most = std::numeric_limits<double>::max();
  };
  /// The value of `key`. Throws Error if it is of another kind or out of range, or if it is missing and there is no
  /// fallback. With a fallback, null counts as missing, but for whole numbers.
  std::int64_t whole(std::string_view key, Whole range, std::optional<std::int64_t> fallback = {});
  double real(std::string_view key, Real range, std::optional<double> fallback = {});
  std::string text(std::string_view key, std::optional<std::string> fallback = {});
  bool flag(std::string_view key, std::optional<bool> fallback = {});
  JsonReader object(std::string_view key);
  const Json& list(std::string_view key);

  /// The value of `key`, of any kind; nullptr if there is none.
  const Json* find(std::string_view key);
  /// A key that is known and whose value does not matter.
  void pass_over(std::string_view key) { asked_for_.emplace_back(key); }
  /// Throws Error if `key` is there and neither null nor `expected`.
  void expect(std::string_view key, const Json& expected);
  /// Throws "<source>: <key>: expected <expected>, got <value>".
  [[noreturn]] void refuse(std::string_view key, std::string_view expected, const Json* got) const;

  const Json& json() const { return json_; }
  const std::string& source() const { return source_.name; }
  /// Every key so far. All others are unknown to who reads, which decides what becomes of them.
  const std::vector<std::string>& asked_for() const { return asked_for_; }

 private:
  const Json& json_;
  JsonSource source_;
  std::string place_;
  std::vector<std::string> asked_for_;
};

}  // namespace bertrand::io
