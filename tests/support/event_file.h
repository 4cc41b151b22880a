// The event files of TensorBoard, read back.
#pragma once
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/crc32c.h"
#include "support/program.h"

namespace support {

/// A message of protocol buffers: numbers (as raw bits) and byte strings by field.
using Field = std::variant<std::uint64_t, std::string>;
using Message = std::map<int, Field>;

template <class T>
T take(std::string_view& bytes) {
  T value;
  REQUIRE(bytes.size() >= sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}
inline std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<std::uint8_t>(bytes);
    value |= static_cast<std::uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
}

inline Message parse(std::string_view bytes) {
  Message message;
  while (!bytes.empty()) {
    const auto tag = take_varint(bytes);
    Field& field = message[static_cast<int>(tag / 8)];
    switch (tag % 8) {
      case 0: field = take_varint(bytes); break;
      case 1: field = take<std::uint64_t>(bytes); break;
      case 5: field = static_cast<std::uint64_t>(take<std::uint32_t>(bytes)); break;
      default: {
        REQUIRE(tag % 8 == 2);
        const auto size = take_varint(bytes);
        REQUIRE(size <= bytes.size());
        field = std::string(bytes.substr(0, size));
        bytes.remove_prefix(size);
      }
    }
  }
  return message;
}
inline std::string text(const Message& message, int field) { return std::get<std::string>(message.at(field)); }
inline std::uint64_t number(const Message& message, int field) { return std::get<std::uint64_t>(message.at(field)); }
inline Message inner(const Message& message, int field) { return parse(text(message, field)); }

inline std::vector<Message> events_of(const std::filesystem::path& file) {
  const std::string all = read_text(file);
  std::string_view rest = all;
  std::vector<Message> events;
  while (!rest.empty()) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = take<std::uint64_t>(rest);
    REQUIRE(take<std::uint32_t>(rest) == bertrand::io::masked(bertrand::io::crc32c(length_bytes)));
    REQUIRE(length + 4 <= rest.size());
    const std::string_view data = rest.substr(0, length);
    rest.remove_prefix(length);
    REQUIRE(take<std::uint32_t>(rest) == bertrand::io::masked(bertrand::io::crc32c(data)));
    events.push_back(parse(data));
  }
  return events;
}

}  // namespace support
