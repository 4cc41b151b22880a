// The safetensors format: u64 header length, a JSON header, then the tensors' bytes without holes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/files.h"
#include "io/safetensors_header.h"
#include "io/tensor_source.h"

namespace bertrand::io {

/// One tensor of a file, of any type that the format has.
struct SafetensorsEntry {
  std::string name;
  std::string dtype_name;  ///< as in the file: F32, BF16, …
  std::vector<std::int64_t> dims;
  std::span<const std::byte> bytes;  ///< little-endian, row-major, of unknown alignment
};

/// Reads a file through memory. Trusts nothing: throws Error(Failure::model) naming file, offset or tensor, expected
/// and got for every way in which the header and the bytes can disagree.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& file);

  const std::vector<SafetensorsEntry>& entries() const { return entries_; }  ///< in the order of their bytes
  const SafetensorsEntry* find(const std::string& name) const;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::vector<SafetensorsEntry> entries_;
  std::map<std::string, std::size_t> index_;
};

/// Writes tensors in the reference's order, by type (the widest first), then name, with the metadata {"format":"pt"}
/// that readers ask for, in pieces of 1 MiB. Returns the CRC-32C of each tensor's bytes by name.
std::map<std::string, std::uint32_t> write_safetensors(FileWriter& out, std::vector<TensorSource> tensors);

}  // namespace bertrand::io
