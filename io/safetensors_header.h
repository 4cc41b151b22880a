// The JSON header of a safetensors file: what it says of each tensor, not yet held against the bytes that follow.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::io {

/// An element type of the format, in the order in which the reference writes them: by width, the widest first.
struct SafetensorsType {
  std::string_view name;  ///< as in the file: F32, BF16, …
  unsigned bits;
};
/// nullptr if the format has no such type.
const SafetensorsType* find_safetensors_type(std::string_view name);

struct SafetensorsHeaderEntry {
  std::string name;
  const SafetensorsType* type = nullptr;
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0, end = 0;  ///< bytes after the header; as many as type and dims ask for
};

/// Reads a header as it streams by, so that a hostile one costs no more memory than what is kept of it. Throws
/// Error(Failure::model) naming `file`, the tensor, expected and got: no JSON, other fields or kinds of values than the
/// format has, keys that come twice (parsers disagree on which counts), shapes that overflow or do not match the
/// offsets.
std::vector<SafetensorsHeaderEntry> parse_safetensors_header(std::string_view text, const std::string& file);

}  // namespace bertrand::io
