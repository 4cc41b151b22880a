// Sorted tables of keys and values in the form of LevelDB (doc/table_format.md), as TensorFlow writes them
// (tsl/lib/io/table_builder.cc): the .index of its checkpoints.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::io {

struct TableEntry {
  std::string key, value;
};

/// The bytes of a table of these entries, whose keys are sorted bytewise and all differ (Error(Failure::bug)). Blocks
/// are not compressed and end as soon as they have `block_size` bytes, which is TensorFlow's unless given.
std::string table_bytes(const std::vector<TableEntry>& entries, std::size_t block_size = 262'144);

/// The entries of a table, blocks compressed by Snappy included. `file` begins every message. Trusts nothing: throws
/// Error(Failure::model) for a wrong magic number, a block outside the file, a wrong CRC, a length or restart outside
/// its block, keys that are not sorted or longer than 4 KiB, and a block or entries that take more than 16 MiB.
std::vector<TableEntry> parse_table(std::string_view bytes, const std::string& file);

/// A key for a message: what is not printable ASCII as \xNN, and no more than its first 80 bytes.
std::string printable(std::string_view key);

}  // namespace bertrand::io
