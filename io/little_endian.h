// Numbers as bytes, the lowest first: of fixed width, or 7 bits in each byte (LEB128, protobuf's varint).
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace bertrand::io {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in memory");

template <class T>
void append_fixed(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
/// The number whose bytes begin there.
template <class T>
T load_fixed(const char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

constexpr std::size_t kMostVarintBytes = 10;

inline void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}
/// Takes a varint off the front of `rest`; none if it does not end within that and kMostVarintBytes.
inline std::optional<std::uint64_t> take_varint(std::string_view& rest) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < rest.size() && i < kMostVarintBytes; ++i) {
    const auto byte = static_cast<unsigned char>(rest[i]);
    value |= static_cast<std::uint64_t>(byte & 0x7F) << (7 * i);
    if (byte >= 0x80) continue;
    rest.remove_prefix(i + 1);
    return value;
  }
  return {};
}

}  // namespace bertrand::io
