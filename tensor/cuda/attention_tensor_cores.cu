// Attention in bf16 and f16 on the tensor cores: the mathematics of attention.cu, whose kernels are easier to read first.
// A block of four warps owns 64 rows, 16 to a warp, and meets the others 64 at a time. The products of a warp are 16 × 64;
// their results stay in its registers and become the left operand of the next product (mma.h says how).
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
  __device__ Lane() : warp(static_cast<int>(threadIdx.x) / 32), g(static_cast<int>(threadIdx.x) % 32 / 4), t(static_cast<int>(threadIdx.x) % 4) {}
};

/// 64 rows of kDim elements in shared memory, in pairs along a row; the right operand where rows are its columns.
template <int kDim>
struct RowTile {
  static constexpr int kStride = kDim / 2 + 4, kBytes = kTileRows * kStride * 4;  // 4 apart: no two lanes meet in a bank
  SharedSpan<Pair> pairs;
  __device__ explicit RowTile(int& byte) : pairs(byte, kTileRows * kStride) { byte += kBytes; }

  template <class T>
  __device__ void fill(const T* from, Dim stride, Dim left) const {
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows * kDim / 2; i += kBlockThreads) {
      const int row = i / (kDim / 2), pair = i % (kDim / 2);
      pairs[row * kStride + pair] = row < left ? reinterpret_cast<const Pair*>(from + row * stride)[pair] : Pair(0);
    }
  }
  /// Rows 8j … 8j + 7 as columns, elements 16k … 16k + 15 as rows.
  __device__ PieceB piece(int j, int k, const Lane& lane) const {
    const int at = (8 * j + lane.g) * kStride + 8 * k + lane.t;
    return {{pairs[at], pairs[at + 4]}};
  }
};

/// The same rows in pairs down a column; the right operand where rows are its rows.
template <int kDim>
struct ColumnTile {
  static constexpr int kStride = kTileRows / 2 + 4, kBytes = kDim * kStride * 4;
  SharedSpan<Pair> pairs;
  __device__ explicit ColumnTile(int& byte) : pairs(byte, kDim * kStride) { byte += kBytes; }

  template <class T>
  __device__ void fill(const T* from, Dim stride, Dim left) const {
    for (int i = static_cast<int>(threadIdx.x); i < kTileRows / 2 * kDim; i += kBlockThreads) {
      const int column = i % kDim, row = i / kDim * 2;
      const Pair low = row < left ? from[row * stride + column].bits : Pair(0), high = row + 1 < left ? from[(row + 1) * stride + column].bits : Pair(0);
      pairs[column * kStride + row / 2] = low | high << 16;
    }
  }
  /// Columns 8n … 8n + 7, rows 16k … 16k + 15.
  __device__ PieceB piece(int n, int k, const Lane& lane) const {
    const int at = (8 * n + lane.g) * kStride + 8 * k + lane.t;
    return {{pairs[at], pairs[at + 4]}};
  }
};

/// A warp's 16 rows as the left operand, straight from memory; rows behind the end are 0.
template <class T, int kDim>
struct OwnRows {
  PieceA pieces[kDim / 16];

  __device__ OwnRows(const T* from, Dim stride, Dim left, const Lane& lane) {
    for (int i = 0; i < 4; ++i) {
      const int row = lane.g + i % 2 * 8, pair = lane.t + i / 2 * 4;
      for (int k = 0; k < kDim / 16; ++k) pieces[k].pairs[i] = row < left ? reinterpret_cast<const Pair*>(from + row * stride)[8 * k + pair] : Pair(0);
    }
  }
  /// own · tileᵀ [16, 64]
  __device__ void times_transposed(const RowTile<kDim>& tile, PieceD (&out)[kTilePieces], const Lane& lane) const {
    for (int j = 0; j < kTilePieces; ++j) {
      out[j] = {};
      for (int k = 0; k < kDim / 16; ++k) mma<T>(out[j], pieces[k], tile.piece(j, k, lane));
    }
  }
};

/// out [16, kDim] += weights [16, 64] · tile
template <class T, int kDim>
__device__ void add_product(PieceD (&out)[kDim / 8], const PieceD (&weights)[kTilePieces], const ColumnTile<kDim>& tile, const Lane& lane) {
  for (int k = 0; k < kTileRows / 16; ++k) {
    const PieceA left = as_a<T>(weights[2 * k], weights[2 * k + 1]);
    for (int n = 0; n < kDim / 8; ++n) mma<T>(out[n], left, tile.piece(n, k, lane));
  }
}

/// Row `half` (0: g, 1: g + 8) of a warp's result, times a factor, to memory.
template <class T, int kDim>
__device__ void store_row(T* to, const PieceD (&out)[kDim / 8], int half, float factor, const Lane& lane) {
  for (int n = 0; n < kDim / 8; ++n)
    reinterpret_cast<Pair*>(to)[4 * n + lane.t] = make_pair<T>(out[n].values[2 * half] * factor, out[n].values[2 * half + 1] * factor);
}

/// combine() over the four lanes that hold one row.
template <class Combine>
__device__ float over_row(float x, Combine combine) {
  x = combine(x, __shfl_xor_sync(kAllLanes, x, 1));
  return combine(x, __shfl_xor_sync(kAllLanes, x, 2));
}

/// values ∘ the dropout's multipliers, where the rows are queries and the columns the 64 keys from `first` on.
template <class T>
__device__ void drop(PieceD (&values)[kTilePieces], const AttentionInputs<T>& in, const AttentionPlace& place, const Dim (&query)[2], Dim first, const Lane& lane) {
  if (in.dropout.threshold == 0) return;
  for (int half = 0; half < 2; ++half) {
    if (query[half] >= place.length) continue;
    const std::int64_t row_key = in.dropout.row_keys[place.first + query[half]];
    for (int c = 0; c < 4; ++c) {  // columns 2t, 2t + 1, 2t + 8, 2t + 9 of every 16
      const int of_piece = c / 2, of_pair = c % 2;
      const auto words = dropout_words(in.dropout, row_key, static_cast<std::uint32_t>(place.head), first / 128, 8 * of_piece + 2 * lane.t + of_pair);
      for (int m = 0; m < kTileRows / 16; ++m)
        values[2 * m + of_piece].values[2 * half + of_pair] *= keeps(in.dropout, words, static_cast<int>(first % 128 / 16) + m) ? static_cast<float>(in.dropout.scale) : 0.0f;
    }
  }
}

template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads) forward_kernel(AttentionInputs<T> in, T* context, float* log_sum) {
  constexpr float kLeast = -std::numeric_limits<float>::infinity();
  const AttentionPlace place(in);
  const Lane lane;
  const Dim first_own = static_cast<Dim>(blockIdx.x) * kOwnRows + lane.warp * 16, stride = 3 * in.hidden;
  if (static_cast<Dim>(blockIdx.x) * kOwnRows >= place.length) return;
  const Dim query[2] = {first_own + lane.g, first_own + lane.g + 8};
  int byte = 0;
  const RowTile<kDim> k(byte);
  const ColumnTile<kDim> v(byte);

  const OwnRows<T, kDim> q(row_of(in, place, 0, first_own), stride, place.length - first_own, lane);
  PieceD out[kDim / 8], p[kTilePieces];
  float most[2] = {kLeast, kLeast}, total[2] = {0, 0};
  for (Dim first = 0; first < place.length; first += kTileRows) {
    const Dim left = place.length - first;
    __syncthreads();
    k.fill(row_of(in, place, 1, first), stride, left);
    v.fill(row_of(in, place, 2, first), stride, left);
    __syncthreads();
    q.times_transposed(k, p, lane);
    for (int half = 0; half < 2; ++half) {
      float greatest = most[half];
      for (int j = 0; j < kTilePieces; ++j)
        for (int e = 0; e < 2; ++e) {
          float& score = p[j].values[2 * half + e];
          score = 8 * j + 2 * lane.t + e < left ? score * static_cast<float>(in.scale) : kLeast;
          greatest = Most{}(score, greatest);
        }
      greatest = over_row(greatest, Most{});
      const float correction = std::exp(most[half] - greatest);
      most[half] = greatest;
      total[half] *= correction;
      for (int n = 0; n < kDim / 8; ++n)
        for (int e = 0; e < 2; ++e) out[n].values[2 * half + e] *= correction;
      for (int j = 0; j < kTilePieces; ++j)
        for (int e = 0; e < 2; ++e) total[half] += p[j].values[2 * half + e] = std::exp(p[j].values[2 * half + e] - greatest);
    }
    drop(p, in, place, query, first, lane);
    add_product<T, kDim>(out, p, v, lane);
  }
  for (int half = 0; half < 2; ++half) {
    const float sum = over_row(total[half], Sum{});
    if (query[half] >= place.length) continue;
    const Dim token = place.first + query[half];
    store_row<T, kDim>(context + token * in.hidden + place.head * kDim, out, half, 1 / sum, lane);
    if (lane.t == 0) log_sum[token * in.heads + place.head] = most[half] + std::log(sum);
  }
}

/// dq: a warp owns queries and meets the keys.
template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads) dq_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  const AttentionPlace place(in);
  const Lane lane;
  const Dim first_own = static_cast<Dim>(blockIdx.x) * kOwnRows + lane.warp * 16, stride = 3 * in.hidden;
  if (static_cast<Dim>(blockIdx.x) * kOwnRows >= place.length) return;
  const Dim query[2] = {first_own + lane.g, first_own + lane.g + 8};
  int byte = 0;
  const RowTile<kDim> k(byte), v(byte);
  const ColumnTile<kDim> k_columns(byte);

  const OwnRows<T, kDim> q(row_of(in, place, 0, first_own), stride, place.length - first_own, lane);
  const OwnRows<T, kDim> dout(saved.dcontext + (place.first + first_own) * in.hidden + place.head * kDim, in.hidden, place.length - first_own, lane);
  float log_sum[2] = {0, 0}, dots[2] = {0, 0};
  for (int half = 0; half < 2; ++half)
    if (query[half] < place.length) {
      log_sum[half] = saved.log_sum[(place.first + query[half]) * in.heads + place.head];
      dots[half] = saved.dots[(place.first + query[half]) * in.heads + place.head];
    }
  PieceD dq[kDim / 8], p[kTilePieces], ds[kTilePieces];
  for (Dim first = 0; first < place.length; first += kTileRows) {
    const Dim left = place.length - first;
    __syncthreads();
    k.fill(row_of(in, place, 1, first), stride, left);
    v.fill(row_of(in, place, 2, first), stride, left);
    k_columns.fill(row_of(in, place, 1, first), stride, left);
    __syncthreads();
    q.times_transposed(k, p, lane);
    dout.times_transposed(v, ds, lane);
    drop(ds, in, place, query, first, lane);
    for (int j = 0; j < kTilePieces; ++j)
      for (int i = 0; i < 4; ++i) {
        const float probability = 8 * j + 2 * lane.t + i % 2 < left ? std::exp(p[j].values[i] * static_cast<float>(in.scale) - log_sum[i / 2]) : 0.0f;
        ds[j].values[i] = probability * (ds[j].values[i] - dots[i / 2]);
      }
    add_product<T, kDim>(dq, ds, k_columns, lane);
  }
  for (int half = 0; half < 2; ++half)
    if (query[half] < place.length) store_row<T, kDim>(gradient_of(in, saved, place, 0, query[half]), dq, half, static_cast<float>(in.scale), lane);
}

/// What belongs to the 64 queries of a tile: their log sums and dots, and which of the block's keys they keep.
struct QueryTile {
  SharedSpan<float> log_sum, dots;
  SharedSpan<Pair> kept;  ///< [64 queries, 16]: bit h of (query, c) is key 128 · group + 16 h + c
  static constexpr int kBytes = kTileRows * (4 + 4 + 64);
  __device__ explicit QueryTile(int& byte) : log_sum(byte, kTileRows), dots(byte + kTileRows * 4, kTileRows), kept(byte + kTileRows * 8, kTileRows * 16) { byte += kBytes; }

  template <class T>
  __device__ void fill(const AttentionInputs<T>& in, const AttentionSaved<T>& saved, const AttentionPlace& place, Dim first, Dim first_key) const {
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
        const auto words = dropout_words(in.dropout, in.dropout.row_keys[place.first + first + i / 16], static_cast<std::uint32_t>(place.head), first_key / 128, i % 16);
        for (int h = 0; h < 8; ++h) bits |= static_cast<Pair>(keeps(in.dropout, words, h)) << h;
      }
      kept[i] = bits;
    }
  }
};

/// dk and dv: a warp owns keys and meets the queries; all products are the transposes of those above.
template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads) dkv_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  const AttentionPlace place(in);
  const Lane lane;
  const Dim first_of_block = static_cast<Dim>(blockIdx.x) * kOwnRows, first_own = first_of_block + lane.warp * 16, stride = 3 * in.hidden;
  if (first_of_block >= place.length) return;
  int byte = 0;
  const RowTile<kDim> q(byte), dout(byte);
  const ColumnTile<kDim> q_columns(byte), dout_columns(byte);
  const QueryTile queries(byte);

  const OwnRows<T, kDim> k(row_of(in, place, 1, first_own), stride, place.length - first_own, lane);
  const OwnRows<T, kDim> v(row_of(in, place, 2, first_own), stride, place.length - first_own, lane);
  PieceD dk[kDim / 8], dv[kDim / 8], p[kTilePieces], ds[kTilePieces];
  for (Dim first = 0; first < place.length; first += kTileRows) {
    const Dim left = place.length - first;
    const T* const dcontext = saved.dcontext + (place.first + first) * in.hidden + place.head * kDim;
    __syncthreads();
    q.fill(row_of(in, place, 0, first), stride, left);
    q_columns.fill(row_of(in, place, 0, first), stride, left);
    dout.fill(dcontext, in.hidden, left);
    dout_columns.fill(dcontext, in.hidden, left);
    queries.fill(in, saved, place, first, first_of_block);
    __syncthreads();
    k.times_transposed(q, p, lane);
    v.times_transposed(dout, ds, lane);
    for (int j = 0; j < kTilePieces; ++j)
      for (int i = 0; i < 4; ++i) {
        const int query = 8 * j + 2 * lane.t + i % 2;
        const float probability = query < left ? std::exp(p[j].values[i] * static_cast<float>(in.scale) - queries.log_sum[query]) : 0.0f;
        float multiplier = 1;
        if (in.dropout.threshold != 0)
          multiplier = queries.kept[query * 16 + lane.g + i / 2 * 8] >> (first_of_block % 128 / 16 + lane.warp) & 1 ? static_cast<float>(in.dropout.scale) : 0.0f;
        p[j].values[i] = probability * multiplier;
        ds[j].values[i] = probability * (ds[j].values[i] * multiplier - queries.dots[query]);
      }
    add_product<T, kDim>(dv, p, dout_columns, lane);
    add_product<T, kDim>(dk, ds, q_columns, lane);
  }
  for (int half = 0; half < 2; ++half) {
    const Dim key = first_own + lane.g + half * 8;
    if (key >= place.length) continue;
    store_row<T, kDim>(gradient_of(in, saved, place, 1, key), dk, half, static_cast<float>(in.scale), lane);
    store_row<T, kDim>(gradient_of(in, saved, place, 2, key), dv, half, 1, lane);
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

}  // namespace

template <class T>
bool attention_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options, T* context, float* log_sum, cudaStream_t stream) {
  return dispatch_head_dim(in.head_dim, [&]<int kDim>() {
    launch_with_tiles(forward_kernel<T, kDim>, attention_grid(options, kOwnRows), kBlockThreads, RowTile<kDim>::kBytes + ColumnTile<kDim>::kBytes, stream, in, context, log_sum);
  });
}
template bool attention_on_tensor_cores(const AttentionInputs<BFloat16>&, const Attention&, BFloat16*, float*, cudaStream_t);
template bool attention_on_tensor_cores(const AttentionInputs<Float16>&, const Attention&, Float16*, float*, cudaStream_t);

template <class T>
bool attention_backward_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options, const AttentionSaved<T>& saved, cudaStream_t stream) {
  return dispatch_head_dim(in.head_dim, [&]<int kDim>() {
    constexpr int kPairOfTiles = RowTile<kDim>::kBytes + ColumnTile<kDim>::kBytes;
    const dim3 grid = attention_grid(options, kOwnRows);
    launch_with_tiles(dq_kernel<T, kDim>, grid, kBlockThreads, kPairOfTiles + RowTile<kDim>::kBytes, stream, in, saved);
    launch_with_tiles(dkv_kernel<T, kDim>, grid, kBlockThreads, 2 * kPairOfTiles + QueryTile::kBytes, stream, in, saved);
  });
}
template bool attention_backward_on_tensor_cores(const AttentionInputs<BFloat16>&, const Attention&, const AttentionSaved<BFloat16>&, cudaStream_t);
template bool attention_backward_on_tensor_cores(const AttentionInputs<Float16>&, const Attention&, const AttentionSaved<Float16>&, cudaStream_t);

}  // namespace bertrand::cuda
