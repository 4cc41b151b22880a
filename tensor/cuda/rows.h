// What softmax and cross entropy do to one row, a block at a time.
#pragma once
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.h"

namespace bertrand::cuda {

/// body(column, left) for each of this thread's packs of a row.
template <class T, class Body>
__device__ void for_row(Dim columns, const Body& body) {
  for (Dim column = static_cast<Dim>(threadIdx.x) * kPack; column < columns;
       column += static_cast<Dim>(blockDim.x) * kPack)
    body(column, columns - column);
}

template <class R>
struct Exponentials {
  R most, total;  ///< the greatest element, Σ exp(x − most)
};

/// Both in one pass over the row (Milakov and Gimelshein 2018): the sum so far is scaled down when a greater element
/// comes.
template <class T>
__device__ Exponentials<Compute<T>> exponentials(const T* row, Dim columns) {
  constexpr Compute<T> kLeast = -std::numeric_limits<Compute<T>>::infinity();
  Compute<T> most = kLeast, total = 0;
  for_row<T>(columns, [&](Dim column, Dim left) {
    const Pack<T> pack = load_pack(row + column, left, kLeast);
    Compute<T> greatest = most;
    for (int i = 0; i < kPack; ++i) greatest = Most{}(pack[i], greatest);
    if (greatest > most) {
      total *= std::exp(most - greatest);
      most = greatest;
    }
    for (int i = 0; i < kPack; ++i)
      if (pack[i] != kLeast) total += std::exp(pack[i] - most);  // e^-∞ is 0 also if nothing greater has come yet
  });
  const Compute<T> greatest = over_block(most, Most{}, kLeast);
  if (most != greatest) total *= std::exp(most - greatest);
  return {greatest, block_sum(total)};
}

}  // namespace bertrand::cuda
