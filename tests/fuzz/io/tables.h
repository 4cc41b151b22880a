// Tables whose checksums are right, out of bytes: what is behind a checksum is not reached by chance.
#pragma once
#include <map>
#include <vector>

#include "fuzz/fuzz.h"
#include "io/crc32c.h"
#include "io/little_endian.h"
#include "io/table.h"

namespace fuzz {

/// The first `size` bytes of `rest`, or what there is.
inline std::string_view take(std::string_view& rest, std::size_t size) {
  const std::string_view taken = rest.substr(0, size);
  rest.remove_prefix(taken.size());
  return taken;
}
inline std::size_t take_byte(std::string_view& rest) {
  const std::string_view taken = take(rest, 1);
  return taken.empty() ? 0 : static_cast<unsigned char>(taken[0]);
}

/// '=' and a table as it stands; or any other byte and blocks, each with two bytes for its length and its compression
/// behind it. Of '#' the last block is the index itself, else the index names all blocks.
inline std::string table_of(std::string_view text) {
  const std::size_t kind = take_byte(text);
  if (kind == '=') return std::string(text);
  std::string table, handle;
  std::vector<bertrand::io::TableEntry> index;
  const auto add = [&](std::string_view block) {
    handle.clear();
    bertrand::io::append_varint(handle, table.size());
    bertrand::io::append_varint(handle, block.size() - 1);
    const std::uint32_t crc = bertrand::io::masked(bertrand::io::crc32c(std::as_bytes(std::span(block))));
    table.append(block).append(reinterpret_cast<const char*>(&crc), sizeof crc);
  };
  while (!text.empty()) {
    const std::size_t low = take_byte(text), size = low + 256 * take_byte(text);
    if (const std::string_view block = take(text, size + 1); !block.empty()) add(block);
    index.push_back({.key = std::string(1, static_cast<char>(index.size() % 128)), .value = handle});
  }
  if (kind != '#' && index.size() <= 128 && !index.empty()) {
    std::string block;
    for (const auto& [key, value] : index) {
      block += '\0';
      bertrand::io::append_varint(block, key.size());
      bertrand::io::append_varint(block, value.size());
      block += key + value;
    }
    block.append(5, '\0');  // no restarts, no compression
    add(block);
  }
  std::string footer = std::string(2, '\0') + handle;
  footer.resize(40, '\0');
  return table + footer + "\x57\xfb\x80\x8b\x24\x75\x47\xdb";
}

/// '=' and a table as it stands; or any other byte and its entries, each a key and a value with a byte for their
/// lengths before them.
inline std::string table_of_entries(std::string_view text) {
  if (take_byte(text) == '=') return std::string(text);
  std::map<std::string, std::string> sorted;
  while (!text.empty()) {
    const std::string key(take(text, take_byte(text)));
    sorted.emplace(key, take(text, take_byte(text)));
  }
  std::vector<bertrand::io::TableEntry> entries;
  for (const auto& [key, value] : sorted) entries.push_back({.key = key, .value = value});
  return bertrand::io::table_bytes(entries);
}

}  // namespace fuzz
