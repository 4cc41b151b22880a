// What the kernels of attention_tensor_cores.cu and attention_short.cu are made of: a warp's rows in registers, tiles
// of the other rows in shared memory, their products, and the dropout of a tile.
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

/// Rows of kDim elements in shared memory, in pairs along a row.
template <int kDim, int kRows = kTileRows>
struct Tile {
  static constexpr int kStride = kDim / 2 + 4,
                       kBytes = kRows * kStride * 4;  // 4 apart: eight rows of a block lie in all banks
  SharedSpan<Pair> pairs;
  __device__ explicit Tile(int& byte) : pairs(byte, kRows * kStride) { byte += kBytes; }

  /// Starts to copy rows, two threads of the block for each row; those after the end become 0.
  template <class T>
  __device__ void start_fill(const T* from, Dim stride, Dim left) const {
    constexpr int kOfRow = kDim / 8;
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kOfRow; i += 2 * kRows) {
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
  /// The left operand whose rows are columns 16r … 16r + 15 of the tile, and whose columns are its rows
  /// 16k … 16k + 15.
  __device__ PieceA columns_as_rows(int r, int k) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    PieceA out;
    load_blocks<true>(out.pairs, pairs, (16 * k + lane / 16 * 8 + lane % 8) * kStride + 8 * r + lane / 8 % 2 * 4);
    return out;
  }
  /// Rows `row` … row + 15 of the tile become a warp's result, times a factor.
  template <class T>
  __device__ void put(int row, const PieceD (&out)[kDim / 8], float factor, const Lane& lane) const {
    for (int half = 0; half < 2; ++half)
      for (int n = 0; n < kDim / 8; ++n)
        pairs[(row + lane.g + 8 * half) * kStride + 4 * n + lane.t] =
            make_pair<T>(out[n].values[2 * half] * factor, out[n].values[2 * half + 1] * factor);
  }
  /// Rows `row` … row + 15 of the tile, or the `left` that are there, to memory: a warp stores whole rows.
  template <class T>
  __device__ void store(int row, T* to, Dim stride, int left) const {
    constexpr int kOfRow = kDim / 8;
    for (int i = static_cast<int>(threadIdx.x) % 32; i < 16 * kOfRow; i += 32)
      if (const int r = i / kOfRow, piece = i % kOfRow; r < left)
        *reinterpret_cast<Wide<Pair>*>(to + r * stride + piece * 8) =
            four_of<Wide<Pair>>(pairs, (row + r) * kStride + piece * 4);
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
  /// Rows `row` … of a tile that has arrived.
  template <int kRows>
  __device__ OwnRows(const Tile<kDim, kRows>& tile, int row) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int k = 0; k < kDim / 16; ++k)
      load_blocks<false>(pieces[k].pairs, tile.pairs, (row + lane % 16) * tile.kStride + 8 * k + lane / 16 * 4);
  }
  /// own · tileᵀ [16, 8 kPieces], of the tile's rows from 8 · first on
  template <int kRows, int kPieces>
  __device__ void times_transposed(const Tile<kDim, kRows>& tile, int first, PieceD (&out)[kPieces]) const {
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

/// out [16, kDim] += left [16, 16] · rows 16k … 16k + 15 of the tile
template <class T, int kDim, int kRows>
__device__ void add_product(PieceD (&out)[kDim / 8], const PieceA& left, const Tile<kDim, kRows>& tile, int k) {
  for (int n = 0; n < kDim / 8; n += 2) {
    PieceB right[2];
    tile.rows_as_rows(right, n, k);
    mma<T>(out[n], left, right[0]);
    mma<T>(out[n + 1], left, right[1]);
  }
}
/// out [16, kDim] += weights [16, 8 kPieces] · the tile's rows from 8 · first on
template <class T, int kDim, int kRows, int kPieces>
__device__ void add_product(PieceD (&out)[kDim / 8], const PieceD (&weights)[kPieces], const Tile<kDim, kRows>& tile,
                            int first) {
  for (int k = 0; k < kPieces / 2; ++k)
    add_product<T>(out, as_a<T>(weights[2 * k], weights[2 * k + 1]), tile, first / 2 + k);
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

/// What a block of kWarps · 16 keys knows of the queries of a tile, in shared memory.
template <int kWarps>
struct QueryTile {
  static constexpr int kBytes = kTileRows * (4 + 4) + kWarps * 32 * 4;
  SharedSpan<float> log_sum, dots;  ///< rowsum(dO ∘ O)
  SharedSpan<std::uint32_t> kept;   ///< [warp][lane]: the dropout's bits; 4 j + 2 e + half is that of query 8j + 2t + e
                                    ///< and of the warp's key g + 8 · half

  __device__ explicit QueryTile(int byte)
      : log_sum(byte, kTileRows), dots(byte + kTileRows * 4, kTileRows), kept(byte + kTileRows * 8, kWarps * 32) {}

  /// By four warps. A draw gives one query eight bits, of keys that lie 16 apart: one key of each of the eight warps,
  /// or of the four and of those of the block's neighbour. Lane 4 j + 2 e + half of the t-th warp draws for query 8j +
  /// 2t + e, counted from `first`, and key g + 8 · half, so that a vote is the word of lane (g, t) of one warp. Lane 4
  /// g + n gets that of the n-th warp, and of the fourth after it.
  template <class T>
  __device__ void draw(const AttentionInputs<T>& in, const AttentionPlace& place, Dim first) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, t = static_cast<int>(threadIdx.x) / 32 % 4;
    const Dim query = first + lane / 4 * 8 + t * 2 + lane / 2 % 2;
    const std::int64_t row_key = query < place.length ? in.dropout.row_keys[place.first + query] : 0;
    std::uint32_t mine[kWarps / 4] = {};
#pragma unroll
    for (int g = 0; g < 8; ++g) {
      auto words =
          dropout_words(in.dropout, row_key, static_cast<std::uint32_t>(place.head), place.row / 128, g + lane % 2 * 8);
      // Four warps are one half of a group of 128 keys. It is chosen by a branch: what is indexed by a variable lies in
      // memory.
      if (kWarps == 4 && place.row % 128 != 0) words = {words[2], words[3], 0, 0};
#pragma unroll
      for (int of_warp = 0; of_warp < kWarps; ++of_warp) {
        const unsigned votes = __ballot_sync(kAllLanes, keeps(in.dropout, words, of_warp));
        if (lane == g * 4 + of_warp % 4) mine[of_warp / 4] = votes;
      }
    }
#pragma unroll
    for (int half = 0; half < kWarps / 4; ++half) kept[(4 * half + lane % 4) * 32 + lane / 4 * 4 + t] = mine[half];
  }
};

/// From s = k · qᵀ in `p` and v · dOᵀ in `ds`, of queries 8 · first … of the tile: the probabilities that the dropout
/// keeps, and the gradients of s, both without the scale of the whole. `kept` begins with the bits of these queries.
template <int kWarps, int kPieces>
__device__ void differentiate(PieceD (&p)[kPieces], PieceD (&ds)[kPieces], const QueryTile<kWarps>& queries, int first,
                              std::uint32_t kept, float exponent, float dropout_scale, const Lane& lane) {
#pragma unroll
  for (int j = 0; j < kPieces; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int query = 8 * (first + j) + 2 * lane.t + i % 2;
      // 1 for a query after the end, whose q and dO are 0.
      const float probability = quick_exp2(p[j].values[i] * exponent - queries.log_sum[query]);
      const bool keeps_it = kept >> (4 * j + i % 2 * 2 + i / 2) & 1;
      p[j].values[i] = keeps_it ? probability : 0.0f;
      ds[j].values[i] = probability * ((keeps_it ? ds[j].values[i] * dropout_scale : 0.0f) - queries.dots[query]);
    }
}

template <class Body>
bool dispatch_head_dim(int head_dim, Body&& body) {
  switch (head_dim) {
    case 16: body.template operator()<16>(); return true;
    case 32: body.template operator()<32>(); return true;
    case 64: body.template operator()<64>(); return true;
    case 128: body.template operator()<128>(); return true;
    default: return false;
  }
}

}  // namespace bertrand::cuda
