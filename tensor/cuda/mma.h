// The tensor cores' matrix product of one warp: D (16 × 8, f32) += A (16 × 16) · B (16 × 8), A and B in bf16 or f16.
//
// Each lane holds a piece of each matrix; with g = lane / 4 and t = lane % 4 (PTX ISA, mma.m16n8k16):
//   A  pair 0: row g,  columns 2t, 2t + 1      pair 1: row g + 8, the same columns
//      pair 2: row g,  columns 2t + 8, 2t + 9  pair 3: row g + 8, the same columns
//   B  pair 0: rows 2t, 2t + 1, column g       pair 1: rows 2t + 8, 2t + 9
//   D  values 0, 1: row g, columns 2t, 2t + 1  values 2, 3: row g + 8
// A lane holds of two neighbouring tiles of D what it must hold of an A, so the result of a product
// can be the left operand of the next product without leaving the registers.
#pragma once
#include "tensor/cuda/numbers.h"

namespace bertrand::cuda {

struct PieceA {
  Pair pairs[4];
};
struct PieceB {
  Pair pairs[2];
};
struct PieceD {
  float values[4] = {0, 0, 0, 0};
};

/// Two neighbouring pieces of D as a piece of A.
template <class T>
__device__ PieceA as_a(const PieceD& left, const PieceD& right) {
  return {{make_pair<T>(left.values[0], left.values[1]), make_pair<T>(left.values[2], left.values[3]),
           make_pair<T>(right.values[0], right.values[1]), make_pair<T>(right.values[2], right.values[3])}};
}

/// A whole warp calls it.
template <class T>
__device__ void mma(PieceD& d, const PieceA& a, const PieceB& b) {
  mma_16x8x16<T>(d.values, a.pairs, b.pairs);
}

}  // namespace bertrand::cuda
