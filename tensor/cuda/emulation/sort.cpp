#include "tensor/cuda/sort.h"

#include <algorithm>
#include <numeric>

namespace bertrand::cuda {

std::size_t sort_memory(Dim) { return 0; }

void sort_rows(const std::int32_t* rows, Dim count, int bits, const SortMemory&, std::int32_t* sorted,
               std::int32_t* order, cudaStream_t stream) {
  check_cuda(emulation::begin_work(stream), "sort");
  std::iota(order, order + count, 0);
  const auto key = [&](std::int32_t i) { return static_cast<std::uint32_t>(rows[i]) & ((1ull << bits) - 1); };
  std::stable_sort(order, order + count, [&](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
  std::transform(order, order + count, sorted, [&](std::int32_t i) { return rows[i]; });
}

}  // namespace bertrand::cuda
