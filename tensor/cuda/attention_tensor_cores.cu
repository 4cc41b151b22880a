// Attention in bf16 and f16 on the tensor cores: the mathematics of attention.cu, whose kernels are easier to read
// first. A block of four warps owns 64 rows, 16 for each warp, and meets the others 64 at a time. The products of a
// warp are 16 × 64; their results stay in its registers and become the left operand of the next product (mma.h says
// how).
#include "tensor/cuda/attention.h"
#include "tensor/cuda/dropout.h"
#include "tensor/cuda/mma.h"

namespace bertrand::cuda {
namespace {

constexpr int kOwnRows = 64, kTileRows = 64, kBlockThreads = 128;
constexpr int kTilePieces = kTileRows / 8;  // results of 8 columns over the rows of a tile

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

  /// By all threads of the block, 16 bytes at a time; rows after the end become 0.
  template <class T>
  __device__ void fill(const T* from, Dim stride, Dim left) const {
    constexpr int kOfRow = kDim / 8, kTurns = kTileRows * kOfRow / kBlockThreads;
    Wide<Pair> held[kTurns];  // all on their way before the first is stored
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = turn * kBlockThreads + static_cast<int>(threadIdx.x), row = i / kOfRow;
      held[turn] =
          row < left ? *reinterpret_cast<const Wide<Pair>*>(from + row * stride + i % kOfRow * 8) : Wide<Pair>{};
    }
    for (int turn = 0; turn < kTurns; ++turn) {
      const int i = turn * kBlockThreads + static_cast<int>(threadIdx.x);
      store_four(pairs, i / kOfRow * kStride + i % kOfRow * 4, held[turn].values);
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
  /// own · tileᵀ [16, 64]
  __device__ void times_transposed(const Tile<kDim>& tile, PieceD (&out)[kTilePieces]) const {
    for (int j = 0; j < kTilePieces; j += 2) {
      out[j] = out[j + 1] = {};
      for (int k = 0; k < kDim / 16; ++k) {
        PieceB right[2];
        tile.rows_as_columns(right, j, k);
        mma<T>(out[j], pieces[k], right[0]);
        mma<T>(out[j + 1], pieces[k], right[1]);
      }
    }
  }
  /// Σ own ∘ other over row g, and over row g + 8.
  __device__ void dots(const OwnRows& other, float (&out)[2]) const {
    const auto element = [](Pair pair, int half) {
      return to_float(std::bit_cast<T>(static_cast<std::uint16_t>(pair >> (16 * half))));
    };
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < kDim / 16; ++k)
        for (int half = 0; half < 2; ++half)
          out[i % 2] += element(pieces[k].pairs[i], half) * element(other.pieces[k].pairs[i], half);
    for (float& sum : out) sum = over_row(sum, Sum{});
  }
};

/// out [16, kDim] += weights [16, 64] · tile
template <class T, int kDim>
__device__ void add_product(PieceD (&out)[kDim / 8], const PieceD (&weights)[kTilePieces], const Tile<kDim>& tile) {
  for (int k = 0; k < kTileRows / 16; ++k) {
    const PieceA left = as_a<T>(weights[2 * k], weights[2 * k + 1]);
    for (int n = 0; n < kDim / 8; n += 2) {
      PieceB right[2];
      tile.rows_as_rows(right, n, k);
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

/// values ∘ the dropout's multipliers, if this lane's rows are first_query and the eighth after it, the columns the
/// 64 keys from `first` on.
template <class T>
__device__ void drop(PieceD (&values)[kTilePieces], const AttentionInputs<T>& in, const AttentionPlace& place,
                     Dim first_query, Dim first, const Lane& lane) {
  if (in.dropout.threshold == 0) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Dim query = first_query + 8 * half;
    if (query >= place.length) continue;
    const std::int64_t row_key = in.dropout.row_keys[place.first + query];
#pragma unroll
    for (int c = 0; c < 4; ++c) {  // columns 2t, 2t + 1, 2t + 8, 2t + 9 of every 16
      const int of_piece = c / 2, of_pair = c % 2;
      const auto words = dropout_words(in.dropout, row_key, static_cast<std::uint32_t>(place.head), first / 128,
                                       8 * of_piece + 2 * lane.t + of_pair);
      // This tile is one half of a group of 128 columns. It is chosen by a branch: what is indexed by a variable lies
      // in memory.
      const bool later = first % 128 != 0;
      const std::array<std::uint32_t, 4> own = {later ? words[2] : words[0], later ? words[3] : words[1]};
#pragma unroll
      for (int m = 0; m < kTileRows / 16; ++m)
        values[2 * m + of_piece].values[2 * half + of_pair] *=
            keeps(in.dropout, own, m) ? static_cast<float>(in.dropout.scale) : 0.0f;
    }
  }
}

constexpr float kLeast = -std::numeric_limits<float>::infinity();

template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads) forward_kernel(AttentionInputs<T> in, T* context, float* log_sum) {
  const AttentionPlace place(in, kOwnRows);
  const Lane lane;
  const Dim first_own = place.row + lane.warp * 16, stride = 3 * in.hidden;
  if (place.row >= place.length) return;
  const Dim first_query = first_own + lane.g;  // and the eighth after it
  int byte = 0;
  const Tile<kDim> k(byte), v(byte);

  const OwnRows<T, kDim> q(row_of(in, place, 0, first_own), stride, place.length - first_own, lane);
  PieceD out[kDim / 8], p[kTilePieces];
  float most[2] = {kLeast, kLeast}, total[2] = {0, 0};
  for (Dim first = 0; first < place.length; first += kTileRows) {
    const Dim left = place.length - first;
    __syncthreads();
    k.fill(row_of(in, place, 1, first), stride, left);
    v.fill(row_of(in, place, 2, first), stride, left);
    __syncthreads();
    q.times_transposed(k, p);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float greatest = most[half];
      for (int j = 0; j < kTilePieces; ++j)
        for (int e = 0; e < 2; ++e) {
          float& score = p[j].values[2 * half + e];
          score = 8 * j + 2 * lane.t + e < left ? score * static_cast<float>(in.scale) : kLeast;
          greatest = Most{}(score, greatest);
        }
      greatest = over_row(greatest, Most{});
      const float correction = quick_exp(most[half] - greatest);
      most[half] = greatest;
      total[half] *= correction;
      for (int n = 0; n < kDim / 8; ++n)
        for (int e = 0; e < 2; ++e) out[n].values[2 * half + e] *= correction;
      for (int j = 0; j < kTilePieces; ++j)
        for (int e = 0; e < 2; ++e)
          total[half] += p[j].values[2 * half + e] = quick_exp(p[j].values[2 * half + e] - greatest);
    }
    drop(p, in, place, first_query, first, lane);
    add_product<T, kDim>(out, p, v);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = over_row(total[half], Sum{});
    const Dim query = first_query + 8 * half, token = place.first + query;
    if (query >= place.length) continue;
    store_row<T, kDim>(context + token * in.hidden + place.head * kDim, out, half, 1 / sum, lane);
    if (lane.t == 0) log_sum[token * in.heads + place.head] = most[half] + std::log(sum);
  }
}

/// dq: a warp owns queries and meets the keys. Leaves rowsum(dO ∘ O) of its queries for dkv_kernel.
template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads) dq_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  const AttentionPlace place(in, kOwnRows);
  const Lane lane;
  const Dim first_own = place.row + lane.warp * 16, stride = 3 * in.hidden;
  if (place.row >= place.length) return;
  const Dim first_query = first_own + lane.g;  // and the eighth after it
  int byte = 0;
  const Tile<kDim> k(byte), v(byte);

  const OwnRows<T, kDim> q(row_of(in, place, 0, first_own), stride, place.length - first_own, lane);
  const Dim own = (place.first + first_own) * in.hidden + place.head * kDim;
  const OwnRows<T, kDim> dout(saved.dcontext + own, in.hidden, place.length - first_own, lane);
  float log_sum[2] = {0, 0}, dots[2] = {0, 0};
  dout.dots(OwnRows<T, kDim>(saved.context + own, in.hidden, place.length - first_own, lane), dots);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Dim query = first_query + 8 * half, row = (place.first + query) * in.heads + place.head;
    if (query >= place.length) continue;
    log_sum[half] = saved.log_sum[row];
    if (lane.t == 0) saved.dots[row] = dots[half];
  }
  PieceD dq[kDim / 8], p[kTilePieces], ds[kTilePieces];
  for (Dim first = 0; first < place.length; first += kTileRows) {
    const Dim left = place.length - first;
    __syncthreads();
    k.fill(row_of(in, place, 1, first), stride, left);
    v.fill(row_of(in, place, 2, first), stride, left);
    __syncthreads();
    q.times_transposed(k, p);
    dout.times_transposed(v, ds);
    drop(ds, in, place, first_query, first, lane);
    for (int j = 0; j < kTilePieces; ++j)
      for (int i = 0; i < 4; ++i) {
        const float probability = 8 * j + 2 * lane.t + i % 2 < left
                                      ? quick_exp(p[j].values[i] * static_cast<float>(in.scale) - log_sum[i / 2])
                                      : 0.0f;
        ds[j].values[i] = probability * (ds[j].values[i] - dots[i / 2]);
      }
    add_product<T, kDim>(dq, ds, k);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (first_query + 8 * half < place.length)
      store_row<T, kDim>(gradient_of(in, saved, place, 0, first_query + 8 * half), dq, half,
                         static_cast<float>(in.scale), lane);
}

/// The log sums and dots of the 64 queries of a tile, and which keys of the block they keep.
struct QueryTile {
  SharedSpan<float> log_sum, dots;
  SharedSpan<Pair> kept;  ///< [64 queries, 16]: bit h of (query, c) is key 128 · group + 16 h + c
  static constexpr int kBytes = kTileRows * (4 + 4 + 64);
  __device__ explicit QueryTile(int& byte)
      : log_sum(byte, kTileRows), dots(byte + kTileRows * 4, kTileRows), kept(byte + kTileRows * 8, kTileRows * 16) {
    byte += kBytes;
  }

  template <class T>
  __device__ void fill(const AttentionInputs<T>& in, const AttentionSaved<T>& saved, const AttentionPlace& place,
                       Dim first) const {
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows; i += kBlockThreads) {
      const bool there = first + i < place.length;
      const Dim row = (place.first + first + i) * in.heads + place.head;
      log_sum[i] = there ? saved.log_sum[row] : 0.0f;
      dots[i] = there ? saved.dots[row] : 0.0f;
    }
    if (in.dropout.threshold == 0) return;
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * 16; i += kBlockThreads) {
      Pair bits = 0;
      if (first + i / 16 < place.length) {
        const auto words = dropout_words(in.dropout, in.dropout.row_keys[place.first + first + i / 16],
                                         static_cast<std::uint32_t>(place.head), place.row / 128, i % 16);
        for (int h = 0; h < 8; ++h) bits |= static_cast<Pair>(keeps(in.dropout, words, h)) << h;
      }
      kept[i] = bits;
    }
  }
};

/// dk and dv: a warp owns keys and meets the queries; all products are the transposes of those above.
template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads) dkv_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  const AttentionPlace place(in, kOwnRows);
  const Lane lane;
  const Dim first_own = place.row + lane.warp * 16, stride = 3 * in.hidden;
  if (place.row >= place.length) return;
  int byte = 0;
  const Tile<kDim> q(byte), dout(byte);
  const QueryTile queries(byte);

  const OwnRows<T, kDim> k(row_of(in, place, 1, first_own), stride, place.length - first_own, lane);
  const OwnRows<T, kDim> v(row_of(in, place, 2, first_own), stride, place.length - first_own, lane);
  PieceD dk[kDim / 8], dv[kDim / 8], p[kTilePieces], ds[kTilePieces];
  for (Dim first = 0; first < place.length; first += kTileRows) {
    const Dim left = place.length - first;
    const T* const dcontext = saved.dcontext + (place.first + first) * in.hidden + place.head * kDim;
    __syncthreads();
    q.fill(row_of(in, place, 0, first), stride, left);
    dout.fill(dcontext, in.hidden, left);
    queries.fill(in, saved, place, first);
    __syncthreads();
    k.times_transposed(q, p);
    v.times_transposed(dout, ds);
    for (int j = 0; j < kTilePieces; ++j)
      for (int i = 0; i < 4; ++i) {
        const int query = 8 * j + 2 * lane.t + i % 2;
        // 1 for a query after the end, whose q and dO are 0.
        const float probability = quick_exp(p[j].values[i] * static_cast<float>(in.scale) - queries.log_sum[query]);
        float multiplier = 1;
        if (in.dropout.threshold != 0)
          multiplier = queries.kept[query * 16 + lane.g + i / 2 * 8] >> (place.row % 128 / 16 + lane.warp) & 1
                           ? static_cast<float>(in.dropout.scale)
                           : 0.0f;
        p[j].values[i] = probability * multiplier;
        ds[j].values[i] = probability * (ds[j].values[i] * multiplier - queries.dots[query]);
      }
    add_product<T, kDim>(dv, p, dout);
    add_product<T, kDim>(dk, ds, q);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Dim key = first_own + lane.g + half * 8;
    if (key >= place.length) continue;
    store_row<T, kDim>(gradient_of(in, saved, place, 1, key), dk, half, static_cast<float>(in.scale), lane);
    store_row<T, kDim>(gradient_of(in, saved, place, 2, key), dv, half, 1, lane);
  }
}

/// Whether rows can be read 16 bytes at a time. For every head_dim here a row has a multiple of 16 bytes.
bool in_wide_pieces(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

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

}  // namespace

template <class T>
bool attention_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options, T* context, float* log_sum,
                               cudaStream_t stream) {
  if (!in_wide_pieces(in.qkv)) return false;
  return dispatch_head_dim(in.head_dim, [&]<int kDim>() {
    launch_with_tiles(forward_kernel<T, kDim>, attention_grid(options, kOwnRows), kBlockThreads, 2 * Tile<kDim>::kBytes,
                      stream, in, context, log_sum);
  });
}
template bool attention_on_tensor_cores(const AttentionInputs<BFloat16>&, const Attention&, BFloat16*, float*,
                                        cudaStream_t);
template bool attention_on_tensor_cores(const AttentionInputs<Float16>&, const Attention&, Float16*, float*,
                                        cudaStream_t);

template <class T>
bool attention_backward_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options,
                                        const AttentionSaved<T>& saved, cudaStream_t stream) {
  if (!in_wide_pieces(in.qkv) || !in_wide_pieces(saved.dcontext)) return false;
  return dispatch_head_dim(in.head_dim, [&]<int kDim>() {
    const dim3 grid = attention_grid(options, kOwnRows);
    launch_with_tiles(dq_kernel<T, kDim>, grid, kBlockThreads, 2 * Tile<kDim>::kBytes, stream, in, saved);
    launch_with_tiles(dkv_kernel<T, kDim>, grid, kBlockThreads, 2 * Tile<kDim>::kBytes + QueryTile::kBytes, stream, in,
                      saved);
  });
}
template bool attention_backward_on_tensor_cores(const AttentionInputs<BFloat16>&, const Attention&,
                                                 const AttentionSaved<BFloat16>&, cudaStream_t);
template bool attention_backward_on_tensor_cores(const AttentionInputs<Float16>&, const Attention&,
                                                 const AttentionSaved<Float16>&, cudaStream_t);

}  // namespace bertrand::cuda
