// The safetensors format: u64 header length, a JSON header, then the tensors' bytes without holes.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bert/formats/files.h"
#include "tensor/ops.h"

namespace bertrand::formats {

/// One tensor of a file. Types that this project does not hold (BOOL, I8, F8_E4M3, …) are listed, not read.
struct SafetensorsEntry {
  std::string name;
  std::string dtype_name;      ///< as in the file: F32, BF16, …
  std::optional<DType> dtype;  ///< what we hold it as
  std::vector<Dim> dims;
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

struct NamedTensor {
  std::string name;
  Tensor value;
};

/// Writes tensors in the reference's order, by type (the widest first), then name, with the metadata {"format":"pt"}
/// that readers ask for. Returns the CRC-32C of each tensor's bytes by name.
std::map<std::string, std::uint32_t> write_safetensors(FileWriter& out, std::vector<NamedTensor> tensors);

/// Copies an entry's numbers to `out`, converting to its dtype. Throws Error(Failure::model) where the entry is no
/// floating type; the caller has compared shapes.
void load_entry(const SafetensorsEntry& entry, const std::filesystem::path& file, const Tensor& out);

}  // namespace bertrand::formats
