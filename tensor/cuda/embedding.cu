// Rows picked by index, and their gradient.
#include <algorithm>
#include <bit>

#include "tensor/cuda/cuda_backend.h"
#include "tensor/cuda/reduce.h"
#include "tensor/cuda/sort.h"

namespace bertrand::cuda {
namespace {

constexpr Dim kBlockRows = 32;  // sorted rows that one block of threads adds up

/// A warp copies a row of `words` words.
template <class Word>
__global__ void gather_kernel(const Word* table, const std::int32_t* rows, Dim count, Dim words, Word* out,
                              Dim table_rows, IndexCheck check) {
  const Dim row = static_cast<Dim>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (row >= count || !check.good({row, rows[row], 0, table_rows - 1})) return;
  const Word* const from = table + rows[row] * words;
  for (Dim w = threadIdx.x % 32; w < words; w += 32) out[row * words + w] = from[w];
}

/// Rows of dy in the order of the table rows they go to; those that go to the same one form a run.
template <class T>
struct Sorted {
  const T* dy;
  const std::int32_t *keys, *order;  ///< the table's row and dy's row of the i-th in sorted order
  Dim count, columns, table_rows;
  IndexCheck check;
  /// Whether the i-th goes to a row that the table has.
  __device__ bool goes_somewhere(Dim i) const { return check.good({order[i], keys[i], 0, table_rows - 1}); }
  __device__ bool begins(Dim i) const { return i == 0 || keys[i - 1] != keys[i]; }
  __device__ bool ends(Dim i) const { return i + 1 == count || keys[i + 1] != keys[i]; }
  /// How many blocks from `from` on begin with the key that is there. It is found by halving: a run may be half of all
  /// rows.
  __device__ Dim blocks_of_run(Dim from) const {
    const std::int32_t key = keys[from];
    Dim some = 1, too_many = (count - from + kBlockRows - 1) / kBlockRows + 1;
    while (too_many - some > 1) {
      const Dim middle = (some + too_many) / 2;
      (keys[from + (middle - 1) * kBlockRows] == key ? some : too_many) = middle;
    }
    return some;
  }
};

/// Adds up a block of sorted rows. A run that lies within the block goes to the table; a part of a longer one waits in
/// heads[block] (its run began before) or in tails[block] (it goes on after it). A thread has eight columns.
template <class T>
__global__ void sum_runs_kernel(Sorted<T> sorted, Compute<T>* heads, Compute<T>* tails, T* dtable) {
  const Dim column = (static_cast<Dim>(blockIdx.y) * blockDim.x + threadIdx.x) * kPack, left = sorted.columns - column;
  if (left <= 0) return;
  const Dim begin = blockIdx.x * kBlockRows,
            end = begin + kBlockRows < sorted.count ? begin + kBlockRows : sorted.count;
  const auto row = [&](Dim i) { return load_packed(sorted.dy + sorted.order[i] * sorted.columns + column, left); };
  bool began = sorted.begins(begin);
  Pack<T> total = {};
  PackedPack<T> next = row(begin);
  for (Dim i = begin; i < end; ++i) {
    const Pack<T> pack = next.unpack();
    if (i + 1 < end) next = row(i + 1);  // the next row is on its way from now on
    for (int e = 0; e < kPack; ++e) total[e] += pack[e];
    const bool ended = sorted.ends(i);
    if (!ended && i + 1 < end) continue;
    if (began && ended) {
      if (sorted.goes_somewhere(i)) {
        T* const to = dtable + sorted.keys[i] * sorted.columns + column;
        const Pack<T> before = load_pack(to, left);
        for (int e = 0; e < kPack; ++e) total[e] += before[e];
        store_pack(to, left, total);
      }
    } else {
      Compute<T>* const part = (began ? tails : heads) + blockIdx.x * sorted.columns + column;
      for (int e = 0; e < kPack && e < left; ++e) part[e] = total[e];
    }
    began = true;
    total = {};
  }
}

/// Puts together the runs that cross blocks: the block in which one begins adds up its parts, in order. A thread has a
/// column.
template <class T>
__global__ void join_runs_kernel(Sorted<T> sorted, const Compute<T>* heads, const Compute<T>* tails, T* dtable) {
  const Dim column = static_cast<Dim>(blockIdx.y) * blockDim.x + threadIdx.x;
  const Dim end = (static_cast<Dim>(blockIdx.x) + 1) * kBlockRows;
  if (column >= sorted.columns || end >= sorted.count || sorted.ends(end - 1)) return;
  Dim begin = end - 1;
  while (begin > end - kBlockRows && !sorted.begins(begin)) --begin;
  if (!sorted.begins(begin) || !sorted.goes_somewhere(begin)) return;
  const std::int32_t key = sorted.keys[begin];
  const Dim others = sorted.blocks_of_run(end);
  Compute<T> total = tails[blockIdx.x * sorted.columns + column];
#pragma unroll 16  // so many are read at once: half of all rows may go to one row of the table
  for (Dim block = blockIdx.x + 1; block <= blockIdx.x + others; ++block)
    total += heads[block * sorted.columns + column];
  T* const to = dtable + key * sorted.columns + column;
  store(to, load(to) + total);
}

}  // namespace

void CudaBackend::gather(const Tensor& table, const Tensor& rows, const Tensor& out) {
  if (out.elements() == 0) return;
  const Dim bytes = table.shape().product(1, table.shape().rank()) * static_cast<Dim>(size_of(table.dtype()));
  const auto together = reinterpret_cast<std::uintptr_t>(table.data()) | reinterpret_cast<std::uintptr_t>(out.data()) |
                        static_cast<std::uintptr_t>(bytes);
  const auto copy = [&]<class Word>() {
    launch(gather_kernel<Word>, blocks(rows.elements(), kWarps), kThreads, 0, stream(), table.as<Word>(),
           rows.as<std::int32_t>(), rows.elements(), bytes / static_cast<Dim>(sizeof(Word)), out.as<Word>(),
           table.shape()[0], reports(kGatherRows));
  };
  if (together % 16 == 0) copy.template operator()<Wide<std::uint32_t>>();
  else if (together % 4 == 0) copy.template operator()<std::uint32_t>();
  else if (together % 2 == 0) copy.template operator()<std::uint16_t>();
  else copy.template operator()<std::uint8_t>();
}

void CudaBackend::scatter_add(const Tensor& dy, const Tensor& rows, const Tensor& dtable, bool accumulate) {
  if (!accumulate) fill(dtable, 0);
  if (dy.elements() == 0) return;
  dispatch_real("scatter_add", dy.dtype(), [&]<class T>() {
    const Dim count = rows.elements(), columns = dtable.shape().product(1, dtable.shape().rank()),
              row_blocks = (count + kBlockRows - 1) / kBlockRows;
    const Workspace keys(*this, count * 4), order(*this, count * 4),
        memory(*this, static_cast<Dim>(sort_memory(count)));
    // A row that the table does not have may come to lie among those of another one, and split their run. Then the
    // gradient is wrong, and the next download throws.
    const auto bits = std::min(32, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(dtable.shape()[0]))));
    sort_rows(rows.as<std::int32_t>(), count, bits, {memory.as<void>(), sort_memory(count)}, keys.as<std::int32_t>(),
              order.as<std::int32_t>(), stream());
    const Workspace parts(*this, 2 * row_blocks * columns * static_cast<Dim>(sizeof(Compute<T>)));
    auto *const heads = parts.as<Compute<T>>(), *const tails = heads + row_blocks * columns;
    const Sorted<T> sorted{dy.as<T>(), keys.as<std::int32_t>(), order.as<std::int32_t>(), count,
                           columns,    dtable.shape()[0],       reports(kScatterRows)};
    const auto launch_for = [&](auto kernel, Dim columns_of_thread) {
      const unsigned threads = std::min(32 * blocks(columns, 32 * columns_of_thread), static_cast<unsigned>(kThreads));
      launch(kernel, dim3(static_cast<unsigned>(row_blocks), blocks(columns, threads * columns_of_thread)), threads, 0,
             stream(), sorted, heads, tails, dtable.as<T>());
    };
    launch_for(sum_runs_kernel<T>, kPack);
    launch_for(join_runs_kernel<T>, 1);
  });
}

}  // namespace bertrand::cuda
