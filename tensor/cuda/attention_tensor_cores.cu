// Attention in bf16 and f16 on the tensor cores: the mathematics of attention.cu, whose kernels are easier to read
// first. A block of four warps owns 64 rows, 16 for each warp, and meets the others a tile of 64 at a time; while it
// computes with one tile the next is on its way. The products of a warp are 16 × 64, or twice 16 × 32 where registers
// are short; their results stay in its registers and become the left operand of the next product (mma.h says how).
//
// Probabilities are powers of two: e^(s / √d − L) = 2^(s log₂e / √d − L log₂e) is a multiply-add and one
// instruction. The dropout's scale is a factor of whole results, so that a dropped probability is only set to 0.
#include "tensor/cuda/attention_tiles.h"

namespace bertrand::cuda {
namespace {

template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads, kDim <= 64 ? 4 : 1)
    forward_kernel(AttentionInputs<T> in, T* context, float* log_sum) {
  const AttentionPlace place(in, kOwnRows);
  const Lane lane;
  const Dim first_own = place.row + lane.warp * 16, stride = 3 * in.hidden;
  if (place.row >= place.length) return;
  const Dim first_query = first_own + lane.g;  // and the eighth after it
  const float scale = static_cast<float>(in.scale), exponent = scale * kLog2E;

  const OwnRows<T, kDim> q(row_of(in, place, 0, first_own), stride, place.length - first_own, lane);
  PieceD out[kDim / 8];
  KeptKeys kept;
  float most[2] = {kLeast, kLeast}, total[2] = {0, 0};
  const auto start = [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    tiles.a.start_fill(row_of(in, place, 1, first), stride, left);
    tiles.b.start_fill(row_of(in, place, 2, first), stride, left);
  };
  for_tiles<kDim>(place.length, start, [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    PieceD p[kTilePieces];
    q.times_transposed(tiles.a, 0, p);
    limit(p, left, lane);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float greatest = most[half];
      for (int j = 0; j < kTilePieces; ++j)  // a NaN is passed over here and comes back as its power
        for (int e = 0; e < 2; ++e) greatest = std::fmax(greatest, p[j].values[2 * half + e]);
      greatest = over_row(greatest, Most{});
      const float correction = quick_exp2((most[half] - greatest) * exponent), subtracted = greatest * exponent;
      most[half] = greatest;
      total[half] *= correction;
      for (int n = 0; n < kDim / 8; ++n)
        for (int e = 0; e < 2; ++e) out[n].values[2 * half + e] *= correction;
      for (int j = 0; j < kTilePieces; ++j)
        for (int e = 0; e < 2; ++e)
          total[half] += p[j].values[2 * half + e] = quick_exp2(p[j].values[2 * half + e] * exponent - subtracted);
    }
    if (in.dropout.threshold != 0) {
      if (first % 128 == 0) kept.draw(in, place, first_query, first, lane);
      kept.drop(p, first);
    }
    add_product<T, kDim>(out, p, tiles.b, 0);
  });
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float sum = over_row(total[half], Sum{});
    const Dim query = first_query + 8 * half, token = place.first + query;
    if (query >= place.length) continue;
    store_row<T, kDim>(context + token * in.hidden + place.head * kDim, out, half,
                       static_cast<float>(in.dropout.scale) / sum, lane);
    if (lane.t == 0) log_sum[token * in.heads + place.head] = most[half] * scale + std::log(sum);
  }
}

constexpr int kParts = 2;  // of a tile, in backward: its products fill half as many registers
constexpr int kPartPieces = kTilePieces / kParts;

/// dq: a warp owns queries and meets the keys. Leaves rowsum(dO ∘ O) of its queries for dkv_kernel.
template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads) dq_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  const AttentionPlace place(in, kOwnRows);
  const Lane lane;
  const Dim first_own = place.row + lane.warp * 16, stride = 3 * in.hidden;
  if (place.row >= place.length) return;
  const Dim first_query = first_own + lane.g;  // and the eighth after it
  const float scale = static_cast<float>(in.scale), exponent = scale * kLog2E,
              dropout_scale = static_cast<float>(in.dropout.scale);

  const OwnRows<T, kDim> q(row_of(in, place, 0, first_own), stride, place.length - first_own, lane);
  const Dim own = (place.first + first_own) * in.hidden + place.head * kDim;
  const OwnRows<T, kDim> dout(saved.dcontext + own, in.hidden, place.length - first_own, lane);
  float log_sum[2] = {0, 0}, dots[2] = {0, 0};
  dout.dots(OwnRows<T, kDim>(saved.context + own, in.hidden, place.length - first_own, lane), dots);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Dim query = first_query + 8 * half, row = (place.first + query) * in.heads + place.head;
    if (query >= place.length) continue;
    log_sum[half] = saved.log_sum[row] * kLog2E;
    if (lane.t == 0) saved.dots[row] = dots[half];
  }
  PieceD dq[kDim / 8];
  KeptKeys kept;
  const auto start = [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    tiles.a.start_fill(row_of(in, place, 1, first), stride, left);
    tiles.b.start_fill(row_of(in, place, 2, first), stride, left);
  };
  for_tiles<kDim>(place.length, start, [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    if (in.dropout.threshold != 0 && first % 128 == 0) kept.draw(in, place, first_query, first, lane);
#pragma unroll 1
    for (int piece = 0; piece < kTilePieces; piece += kPartPieces) {
      PieceD p[kPartPieces], ds[kPartPieces];
      q.times_transposed(tiles.a, piece, p);
      dout.times_transposed(tiles.b, piece, ds);
      limit(p, left - 8 * piece, lane);
      if (in.dropout.threshold != 0) kept.drop(ds, first + 8 * piece);
      for (int j = 0; j < kPartPieces; ++j)
        for (int i = 0; i < 4; ++i)
          ds[j].values[i] =
              quick_exp2(p[j].values[i] * exponent - log_sum[i / 2]) * (ds[j].values[i] * dropout_scale - dots[i / 2]);
      add_product<T, kDim>(dq, ds, tiles.a, piece);
    }
  });
#pragma unroll
  for (int half = 0; half < 2; ++half)
    if (first_query + 8 * half < place.length)
      store_row<T, kDim>(gradient_of(in, saved, place, 0, first_query + 8 * half), dq, half, scale, lane);
}

/// Blocks that shall share an SM: three have 168 registers for each thread.
template <int kDim>
constexpr int kBlocksOfSm = kDim <= 64 ? 3 : 1;

/// dk and dv: a warp owns keys and meets the queries; all products are the transposes of those above.
template <class T, int kDim>
__global__ void __launch_bounds__(kBlockThreads, kBlocksOfSm<kDim>)
    dkv_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  const AttentionPlace place(in, kOwnRows);
  const Lane lane;
  const Dim first_own = place.row + lane.warp * 16, stride = 3 * in.hidden;
  if (place.row >= place.length) return;
  const float scale = static_cast<float>(in.scale), exponent = scale * kLog2E,
              dropout_scale = static_cast<float>(in.dropout.scale);

  const OwnRows<T, kDim> k(row_of(in, place, 1, first_own), stride, place.length - first_own, lane);
  const OwnRows<T, kDim> v(row_of(in, place, 2, first_own), stride, place.length - first_own, lane);
  PieceD dk[kDim / 8], dv[kDim / 8];
  const auto queries_from = [](Dim first) {  // after the tiles; the next ones lie beside them
    return QueryTile<4>(2 * Tiles<kDim>::kBytes + static_cast<int>(first / kTileRows % 2) * QueryTile<4>::kBytes);
  };
  const auto start = [&](const Tiles<kDim>& tiles, Dim first, Dim left) {
    tiles.a.start_fill(row_of(in, place, 0, first), stride, left);
    tiles.b.start_fill(saved.dcontext + (place.first + first) * in.hidden + place.head * kDim, in.hidden, left);
    const QueryTile<4> queries = queries_from(first);
    if (const int i = static_cast<int>(threadIdx.x); i < kTileRows) {
      const bool there = first + i < place.length;
      const Dim row = (place.first + first + i) * in.heads + place.head;
      queries.log_sum[i] = there ? saved.log_sum[row] * kLog2E : 0.0f;
      queries.dots[i] = there ? saved.dots[row] : 0.0f;
    }
    if (in.dropout.threshold != 0) queries.draw(in, place, first);
  };
  for_tiles<kDim>(place.length, start, [&](const Tiles<kDim>& tiles, Dim first, Dim) {
    const QueryTile<4> queries = queries_from(first);
    std::uint32_t kept = ~0u;
    if (in.dropout.threshold != 0) kept = queries.kept[threadIdx.x];
#pragma unroll 1
    for (int piece = 0; piece < kTilePieces; piece += kPartPieces) {
      PieceD p[kPartPieces], ds[kPartPieces];
      k.times_transposed(tiles.a, piece, p);
      v.times_transposed(tiles.b, piece, ds);
      differentiate(p, ds, queries, piece, kept, exponent, dropout_scale, lane);
      add_product<T, kDim>(dv, p, tiles.b, piece);
      add_product<T, kDim>(dk, ds, tiles.a, piece);
      kept >>= 4 * kPartPieces;
    }
  });
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const Dim key = first_own + lane.g + half * 8;
    if (key >= place.length) continue;
    store_row<T, kDim>(gradient_of(in, saved, place, 1, key), dk, half, scale, lane);
    store_row<T, kDim>(gradient_of(in, saved, place, 2, key), dv, half, dropout_scale, lane);
  }
}

/// Whether rows can be read 16 bytes at a time. For every head_dim here a row has a multiple of 16 bytes.
bool in_wide_pieces(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

}  // namespace

template <class T>
bool attention_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options, T* context, float* log_sum,
                               cudaStream_t stream) {
  if (!in_wide_pieces(in.qkv)) return false;
  return dispatch_head_dim(in.head_dim, [&]<int kDim>() {
    launch_with_tiles(forward_kernel<T, kDim>, attention_grid(options, kOwnRows), kBlockThreads,
                      2 * Tiles<kDim>::kBytes, stream, in, context, log_sum);
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
  if (in.longest <= kShort && in_wide_pieces(saved.dqkv) && short_attention_backward(in, options, saved, stream))
    return true;
  return dispatch_head_dim(in.head_dim, [&]<int kDim>() {
    const dim3 grid = attention_grid(options, kOwnRows);
    launch_with_tiles(dq_kernel<T, kDim>, grid, kBlockThreads, 2 * Tiles<kDim>::kBytes, stream, in, saved);
    launch_with_tiles(dkv_kernel<T, kDim>, grid, kBlockThreads, 2 * Tiles<kDim>::kBytes + 2 * QueryTile<4>::kBytes,
                      stream, in, saved);
  });
}
template bool attention_backward_on_tensor_cores(const AttentionInputs<BFloat16>&, const Attention&,
                                                 const AttentionSaved<BFloat16>&, cudaStream_t);
template bool attention_backward_on_tensor_cores(const AttentionInputs<Float16>&, const Attention&,
                                                 const AttentionSaved<Float16>&, cudaStream_t);

}  // namespace bertrand::cuda
