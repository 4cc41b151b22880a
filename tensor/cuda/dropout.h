// The multipliers of a dropout, computed again at each use: the same bits of Philox as tensor/cpu/dropout.h.
#pragma once
#include "tensor/cuda/cuda_backend.h"
#include "tensor/cuda/reduce.h"

namespace bertrand::cuda {

/// Sixteen bits for each of the columns c, c + 16, …, c + 112 of a group of 128 columns, two to a word.
__device__ inline std::array<std::uint32_t, 4> dropout_words(const DropoutArguments& dropout, std::int64_t row_key,
                                                             std::uint32_t plane, Dim group, int c) {
  return philox4x32({static_cast<std::uint32_t>(row_key), static_cast<std::uint32_t>(row_key >> 32), plane,
                     static_cast<std::uint32_t>(group * 16 + c)},
                    dropout.keys);
}
/// The h-th of those eight. A half of a word is compared as the upper half: what is below it decides nothing.
__device__ inline bool keeps(const DropoutArguments& dropout, const std::array<std::uint32_t, 4>& words, int h) {
  return words[static_cast<unsigned>(h / 2)] << (h % 2 == 0 ? 16 : 0) >= dropout.threshold << 16;
}

/// Which draws are a row's; a kernel reads it early, so that it is there when they begin.
__device__ inline std::int64_t row_key(const DropoutArguments& dropout, Dim row) {
  return dropout.threshold == 0 ? 0 : dropout.row_keys[row];
}

/// Bit i: whether column `first + 8 · lane + i` of a row is kept; `first` is a multiple of 256. A whole warp calls it:
/// each lane draws for eight columns that lie 16 apart, and votes bring the answers to the lanes that hold them side by
/// side.
__device__ inline unsigned keep_bits(const DropoutArguments& dropout, std::int64_t row_key, std::uint32_t plane,
                                     Dim first) {
  if (dropout.threshold == 0) return 0xff;
  const int lane = static_cast<int>(threadIdx.x) % 32, group = lane / 16, place = lane % 16;
  const auto words = dropout_words(dropout, row_key, plane, first / 128 + group, place);
  unsigned mine = 0;
  for (int h = 0; h < 8; ++h) {
    const unsigned votes = __ballot_sync(kAllLanes, keeps(dropout, words, h));
    if (h == place / 2) mine = votes;
  }
  return mine >> (group * 16 + place % 2 * 8) & 0xffu;
}

/// What the columns from `column` on are multiplied by, given the row's key: eight of those that the lanes of a warp
/// hold side by side. A whole warp calls it.
template <class T>
__device__ Pack<T> multipliers(const DropoutArguments& dropout, std::int64_t row_key, Dim column) {
  const unsigned kept = keep_bits(dropout, row_key, 0, column / kWarpColumns * kWarpColumns);
  Pack<T> out;
  for (int i = 0; i < kPack; ++i) out[i] = kept >> i & 1 ? static_cast<Compute<T>>(dropout.scale) : Compute<T>(0);
  return out;
}

}  // namespace bertrand::cuda
