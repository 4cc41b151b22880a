// Features as the bytes of a tf.train.Example: parse_example() backwards.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "bert/data/tf_example.h"

namespace support {

/// Features in the order of their names, lists packed.
inline std::string serialize_example(const bertrand::data::Features& features) {
  bertrand::data::ExampleBuilder builder;
  for (const auto& [name, feature] : features) {
    if (const auto* bytes = std::get_if<std::vector<std::string>>(&feature)) builder.add(name, std::span(*bytes));
    if (const auto* floats = std::get_if<std::vector<float>>(&feature)) builder.add(name, std::span(*floats));
    if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&feature)) builder.add(name, std::span(*ints));
  }
  std::string message;
  builder.append_to(message);
  return message;
}

}  // namespace support
