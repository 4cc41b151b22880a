// tf.train.Example, the message in Google's TFRecords, read and written without protobuf.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace bertrand::data {

/// One of the three lists that a feature can be; std::monostate if the message names none.
using Feature = std::variant<std::monostate, std::vector<std::string>, std::vector<float>, std::vector<std::int64_t>>;
/// An Example: features by name, sorted.
using Features = std::map<std::string, Feature, std::less<>>;

/// Decodes an Example; packed and unpacked lists, unknown fields skipped, as protobuf does (of a feature given twice,
/// the last one counts). Throws Error(Failure::input) that begins with `place`, which says where the bytes are from.
Features parse_example(std::string_view message, std::string_view place);

/// Builds an Example feature by feature from plain arrays, for records by the million. The order is the caller's.
class ExampleBuilder {
 public:
  void clear() { features_.clear(); }
  void add(std::string_view name, std::span<const std::int32_t> values);
  void add(std::string_view name, std::span<const std::int64_t> values);
  void add(std::string_view name, std::span<const float> values);
  void add(std::string_view name, std::span<const std::string> values);
  /// Appends the encoded message.
  void append_to(std::string& out) const;

 private:
  void add_list(std::string_view name, int kind);

  std::string features_;  // the entries of the map so far
  std::string list_;      // the values of the list being added
};

}  // namespace bertrand::data
