// What the kernels of attention_tensor_cores.cu are made of: a warp's rows in registers, tiles of the other rows in
// shared memory, their products, and the dropout of a tile.
#pragma once
#include "tensor/cuda/attention.h"
#include "tensor/cuda/dropout.h"
#include "tensor/cuda/mma.h"

namespace bertrand::cuda {

inline constexpr int kOwnRows = 64, kTileRows = 64, kBlockThreads = 128;
inline constexpr int kTilePieces = kTileRows / 8;  // results of 8 columns over the rows of a tile
inline constexpr float kLog2E = 1.4426950408889634f;

/// This lane's place in a piece.
struct Lane {
  int warp, g, t;
  __device__ Lane()
      : warp(static_cast<int>(threadIdx.x) / 32),
        g(static_cast<int>(threadIdx.x) % 32 / 4),
        t(static_cast<int>(threadIdx.x) % 4) {}
};

/// combine() over the four lanes that hold one row.
template <class Combine>
__device__ float over_row(float x, Combine combine) {
  x = combine(x, __shfl_xor_sync(kAllLanes, x, 1));
  return combine(x, __shfl_xor_sync(kAllLanes, x, 2));
}

/// 64 rows of kDim elements in shared memory, in pairs along a row.
template <int kDim>
struct Tile {
  static constexpr int kStride = kDim / 2 + 4,
                       kBytes = kTileRows * kStride * 4;  // 4 apart: eight rows of a block lie in all banks
  SharedSpan<Pair> pairs;
  __device__ explicit Tile(int& byte) : pairs(byte, kTileRows * kStride) { byte += kBytes; }

  /// Starts to copy rows, by all threads of the block; those after the end become 0.
  template <class T>
  __device__ void start_fill(const T* from, Dim stride, Dim left) const {
    constexpr int kOfRow = kDim / 8;
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kOfRow; i += kBlockThreads) {
      const int row = i / kOfRow, column = i % kOfRow;
      const bool there = row < left;
      start_copy(pairs, row * kStride + column * 4, there ? from + row * stride + column * 8 : from, there);
    }
  }
  /// Right operands whose columns are rows 8j … 8j + 7, and the next 8, of the tile; elements 16k … 16k + 15 are their
  /// rows.
  __device__ void rows_as_columns(PieceB (&out)[2], int j, int k) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Pair blocks[4];
    load_blocks<false>(blocks, pairs, (8 * j + lane / 16 * 8 + lane % 8) * kStride + 8 * k + lane / 8 % 2 * 4);
    out[0] = {{blocks[0], blocks[1]}};
    out[1] = {{blocks[2], blocks[3]}};
  }
  /// Right operands whose rows are rows 16k … 16k + 15 of the tile; columns 8n … 8n + 7, and the next 8.
  __device__ void rows_as_rows(PieceB (&out)[2], int n, int k) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    Pair blocks[4];
    load_blocks<true>(blocks, pairs, (16 * k + lane % 16) * kStride + 4 * (n + lane / 16));
    out[0] = {{blocks[0], blocks[1]}};
    out[1] = {{blocks[2], blocks[3]}};
  }
};

/// A warp's 16 rows as the left operand, straight from memory; rows after the end are 0.
template <class T, int kDim>
struct OwnRows {
  PieceA pieces[kDim / 16];

  __device__ OwnRows(const T* from, Dim stride, Dim left, const Lane& lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane.g + i % 2 * 8, pair = lane.t + i / 2 * 4;
      for (int k = 0; k < kDim / 16; ++k)
        pieces[k].pairs[i] = row < left ? reinterpret_cast<const Pair*>(from + row * stride)[8 * k + pair] : Pair(0);
    }
  }
  /// own · tileᵀ [16, 8 kPieces], of the tile's rows from 8 · first on
  template <int kPieces>
  __device__ void times_transposed(const Tile<kDim>& tile, int first, PieceD (&out)[kPieces]) const {
    for (int j = 0; j < kPieces; j += 2) {
      out[j] = out[j + 1] = {};
      for (int k = 0; k < kDim / 16; ++k) {
        PieceB right[2];
        tile.rows_as_columns(right, first + j, k);
        mma<T>(out[j], pieces[k], right[0]);
        mma<T>(out[j + 1], pieces[k], right[1]);
      }
    }
  }
  /// Σ own ∘ other over row g, and over row g + 8.
  __device__ void dots(const OwnRows& other, float (&out)[2]) const {
    const auto element = [](Pair pair, int half) { return to_float(of_pair<T>(pair, half)); };
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < kDim / 16; ++k)
        for (int half = 0; half < 2; ++half)
          out[i % 2] += element(pieces[k].pairs[i], half) * element(other.pieces[k].pairs[i], half);
    for (float& sum : out) sum = over_row(sum, Sum{});
  }
};

/// out [16, kDim] += weights [16, 8 kPieces] · the tile's rows from 8 · first on
template <class T, int kDim, int kPieces>
__device__ void add_product(PieceD (&out)[kDim / 8], const PieceD (&weights)[kPieces], const Tile<kDim>& tile,
                            int first) {
  for (int k = 0; k < kPieces / 2; ++k) {
    const PieceA left = as_a<T>(weights[2 * k], weights[2 * k + 1]);
    for (int n = 0; n < kDim / 8; n += 2) {
      PieceB right[2];
      tile.rows_as_rows(right, n, first / 2 + k);
      mma<T>(out[n], left, right[0]);
      mma<T>(out[n + 1], left, right[1]);
    }
  }
}

/// Row `half` (0: g, 1: g + 8) of a warp's result, times a factor, to memory.
template <class T, int kDim>
__device__ void store_row(T* to, const PieceD (&out)[kDim / 8], int half, float factor, const Lane& lane) {
  for (int n = 0; n < kDim / 8; ++n)
    reinterpret_cast<Pair*>(to)[4 * n + lane.t] =
        make_pair<T>(out[n].values[2 * half] * factor, out[n].values[2 * half + 1] * factor);
}

/// The tiles of two operands from row `first` of the sequence on. The next two lie beside them.
template <int kDim>
struct Tiles {
  static constexpr int kBytes = 2 * Tile<kDim>::kBytes;
  int byte;
  Tile<kDim> a, b;
  __device__ explicit Tiles(Dim first) : byte(static_cast<int>(first / kTileRows % 2) * kBytes), a(byte), b(byte) {}
};

/// body(tiles, first, left) for the tiles of a sequence, one after the other; start(tiles, first, left) has begun to
/// fill each of them one tile earlier.
template <int kDim, class Start, class Body>
__device__ void for_tiles(Dim length, const Start& start, const Body& body) {
  const auto start_from = [&](Dim first) {
    if (first < length) start(Tiles<kDim>(first), first, length - first);
    end_copies();
  };
  start_from(0);
  for (Dim first = 0; first < length; first += kTileRows) {
    start_from(first + kTileRows);
    wait_for_copies<1>();
    __syncthreads();
    body(Tiles<kDim>(first), first, length - first);
    __syncthreads();  // the tiles after the next are filled where these are
  }
}

inline constexpr float kLeast = -std::numeric_limits<float>::infinity();

/// Scores of keys after the sequence's end become -∞; `left` are left from the first piece on.
template <int kPieces>
__device__ void limit(PieceD (&scores)[kPieces], Dim left, const Lane& lane) {
  if (left >= 8 * kPieces) return;
#pragma unroll
  for (int j = 0; j < kPieces; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (8 * j + 2 * lane.t + i % 2 >= left) scores[j].values[i] = kLeast;
}

/// The keys that the dropout keeps for this lane's two queries, of the 128 keys of two tiles: bit 4 h + c says it of
/// the key in column 2t, 2t + 1, 2t + 8, 2t + 9 (for c = 0 … 3) of the h-th sixteen.
struct KeptKeys {
  std::uint32_t of_query[2] = {};

  template <class T>
  __device__ void draw(const AttentionInputs<T>& in, const AttentionPlace& place, Dim first_query, Dim first,
                       const Lane& lane) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const Dim query = first_query + 8 * half;
      of_query[half] = 0;
      if (query >= place.length) continue;
      const std::int64_t row_key = in.dropout.row_keys[place.first + query];
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        const auto words = dropout_words(in.dropout, row_key, static_cast<std::uint32_t>(place.head), first / 128,
                                         8 * (c / 2) + 2 * lane.t + c % 2);
#pragma unroll
        for (int h = 0; h < 8; ++h)
          if (keeps(in.dropout, words, h)) of_query[half] |= 1u << (4 * h + c);
      }
    }
  }
  /// What is dropped becomes 0; `first` is the key of the first piece's first column.
  template <int kPieces>
  __device__ void drop(PieceD (&values)[kPieces], Dim first) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t kept = of_query[half] >> (first % 128 / 16 * 4);
#pragma unroll
      for (int j = 0; j < kPieces; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if ((kept >> (2 * j + e) & 1) == 0) values[j].values[2 * half + e] = 0;
    }
  }
};

}  // namespace bertrand::cuda
