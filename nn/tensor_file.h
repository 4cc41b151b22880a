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

/// io::write_safetensors() of tensors on any device. Returns the CRC-32C of each tensor's bytes by name.
std::map<std::string, std::uint32_t> write_tensors(io::FileWriter& out, const std::vector<NamedTensor>& tensors);

/// What a tensor holds an entry as; none for types that this project does not hold (BOOL, I8, F8_E4M3, …).
std::optional<DType> dtype_of(const io::SafetensorsEntry& entry);

/// A tensor of a file, to be loaded while the file is open. It can be loaded if it is F64, F32, F16 or BF16.
StoredTensor stored_tensor(const io::SafetensorsEntry& entry, const std::filesystem::path& file);

/// Copies an entry's numbers to `out`, converting to its dtype. Throws Error(Failure::model) if the entry is of no
/// floating type; the caller has compared shapes.
void load_entry(const io::SafetensorsEntry& entry, const std::filesystem::path& file, const Tensor& out);

}  // namespace bertrand::nn
