// Tensors in safetensors files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "nn/weights.h"
#include "tensor/ops.h"

namespace bertrand::nn {

struct NamedTensor {
  std::string name;
  Tensor value;
};
/// An optimizer's moments of what is trained, by the names of the parameters.
struct Moments {
  std::vector<NamedTensor> first, second;
};

/// A tensor on any device as what a file is written from; it shares the tensor's memory.
io::TensorSource tensor_source(const NamedTensor& tensor);

/// The transpose of a matrix: other programs keep a weight as [in, out]. It is gathered on the host when its first
/// piece is read, and kept until its last.
io::TensorSource transposed_source(const NamedTensor& matrix);

/// io::write_safetensors() of tensors on any device. Returns the CRC-32C of each tensor's bytes by name.
std::map<std::string, std::uint32_t> write_tensors(io::FileWriter& out, const std::vector<NamedTensor>& tensors);

/// What a tensor holds an entry as; none for types that this project does not hold (BOOL, I8, F8_E4M3, …).
std::optional<DType> dtype_of(const io::SafetensorsEntry& entry);

/// The numbers of a tensor in a file that is open, whatever the file's form.
struct StoredNumbers {
  std::string name;        ///< as the file calls it
  std::string place;       ///< for messages: <file>: tensor "<name>"
  std::string dtype_name;  ///< as safetensors files have it
  std::vector<std::int64_t> dims;
  std::function<std::span<const std::byte>()> bytes;  ///< little-endian, of unknown alignment
  bool transposed = false;                            ///< the file holds the columns of the matrix as rows
};

StoredNumbers numbers_of(const io::SafetensorsEntry& entry, const std::filesystem::path& file);

/// What a parameter can be loaded from, while the file is open. It can be loaded if it is F64, F32, F16 or BF16.
StoredTensor stored_tensor(StoredNumbers numbers);
inline StoredTensor stored_tensor(const io::SafetensorsEntry& entry, const std::filesystem::path& file) {
  return stored_tensor(numbers_of(entry, file));
}

/// Copies numbers to `out`, converting to its dtype. Throws Error(Failure::model) if they are of no floating type; the
/// caller has compared shapes.
void load_numbers(const StoredNumbers& numbers, const Tensor& out);
void load_entry(const io::SafetensorsEntry& entry, const std::filesystem::path& file, const Tensor& out);

}  // namespace bertrand::nn
