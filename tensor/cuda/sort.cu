// Sorting on a GPU; emulation/sort.cpp is its twin.
#include "tensor/cuda/sort.h"

#include <cub/device/device_radix_sort.cuh>

namespace bertrand::cuda {
namespace {

__global__ void count_up_kernel(std::int32_t* out, Dim count) {
  const Dim i = static_cast<Dim>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = static_cast<std::int32_t>(i);
}

std::size_t padded(Dim count) { return (static_cast<std::size_t>(count) * sizeof(std::int32_t) + 255) / 256 * 256; }

std::size_t radix_memory(Dim count) {
  std::size_t bytes = 0;
  const std::int32_t* const in = nullptr;
  std::int32_t* const out = nullptr;
  check_cuda(cub::DeviceRadixSort::SortPairs(nullptr, bytes, in, out, in, out, static_cast<int>(count)), "sort");
  return bytes;
}

}  // namespace

std::size_t sort_memory(Dim count) { return padded(count) + radix_memory(count); }

void sort_rows(const std::int32_t* rows, Dim count, int bits, const SortMemory& memory, std::int32_t* sorted,
               std::int32_t* order, cudaStream_t stream) {
  auto* const places = static_cast<std::int32_t*>(memory.data);
  launch(count_up_kernel, blocks(count, 256), 256, 0, stream, places, count);
  std::size_t bytes = memory.bytes - padded(count);
  check_cuda(cub::DeviceRadixSort::SortPairs(static_cast<std::byte*>(memory.data) + padded(count), bytes, rows, sorted,
                                             places, order, static_cast<int>(count), 0, bits, stream),
             "sort");
}

}  // namespace bertrand::cuda
