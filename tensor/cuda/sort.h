// The one device-wide algorithm that is not written here: sorting, by CUB on a GPU.
#pragma once
#include <cstdint>

#include "tensor/cuda/launch.h"
#include "tensor/shape.h"

namespace bertrand::cuda {

struct SortMemory {
  void* data;
  std::size_t bytes;
};

/// The bytes that sort_rows needs for `count` rows.
std::size_t sort_memory(Dim count);
/// sorted [count] = rows in rising order of their lowest `bits` bits; order [count] = the place that each had before.
/// Equals keep their order.
void sort_rows(const std::int32_t* rows, Dim count, int bits, const SortMemory& memory, std::int32_t* sorted,
               std::int32_t* order, cudaStream_t stream);

}  // namespace bertrand::cuda
