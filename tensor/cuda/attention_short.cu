// Attention backward in bf16 and f16 for sequences of at most 128 tokens: a block of eight warps has a head of a
// sequence to itself. So q, k and dO are read once, the probabilities are computed once, and what dq needs of the keys
// of all warps lies in shared memory: five products, where dq_kernel and dkv_kernel of attention_tensor_cores.cu take
// seven.
#include "tensor/cuda/attention_tiles.h"

namespace bertrand::cuda {
namespace {

constexpr int kHeadWarps = kShort / 16, kThreadsOfHead = kHeadWarps * 32;
constexpr int kPartPieces = 2;  // 16 queries at once: two blocks of an SM have 128 registers for each thread

/// What a block keeps in shared memory.
template <int kDim>
struct Head {
  int byte = 0;
  const Tile<kDim, kShort> k{byte}, q{byte}, dout{byte};
  const int place_of_ds = byte;
  const Tile<kShort, kShort> ds{byte};  ///< gradients of the scores, [key][query]
  static constexpr int kBytes = 3 * Tile<kDim, kShort>::kBytes + Tile<kShort, kShort>::kBytes +
                                kShort / kTileRows * QueryTile<kHeadWarps>::kBytes;
  /// Lies where ds comes to lie.
  __device__ Tile<kDim, kShort> v() const {
    int at = place_of_ds;
    return Tile<kDim, kShort>(at);
  }
  /// Of the queries from 64 · tile on.
  __device__ QueryTile<kHeadWarps> queries(int tile) const {
    return QueryTile<kHeadWarps>(byte + tile * QueryTile<kHeadWarps>::kBytes);
  }
};

/// Scores of this warp's keys after the sequence's end become -∞; `left` are left from its first key on.
template <int kPieces>
__device__ void limit_keys(PieceD (&scores)[kPieces], int left, const Lane& lane) {
  if (left >= 16) return;
#pragma unroll
  for (int j = 0; j < kPieces; ++j)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (lane.g + i / 2 * 8 >= left) scores[j].values[i] = kLeast;
}

/// out[first + r] = Σ a ∘ b over row r of 16, by a warp that reads whole rows; 0 for those after the `left` that are
/// there.
template <int kDim, class T>
__device__ void sum_of_products(const T* a, const T* b, Dim stride, int left, const SharedSpan<float>& out, int first) {
  constexpr int kOfRow = kDim / 8;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < 16 * kOfRow; i += 32) {
    const int row = i / kOfRow, piece = i % kOfRow;
    const Dim at = row * stride + piece * 8, there = row < left ? kPack : 0;
    const Pack<T> x = load_pack(a + at, there), y = load_pack(b + at, there);
    float sum = 0;
    for (int e = 0; e < kPack; ++e) sum += x[e] * y[e];
    for (int lanes = 1; lanes < kOfRow; lanes *= 2) sum += __shfl_xor_sync(kAllLanes, sum, lanes);
    if (piece == 0) out[first + row] = sum;
  }
}

template <class T, int kDim>
__global__ void __launch_bounds__(kThreadsOfHead, 2) backward_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  const AttentionPlace place(in, kShort);
  if (place.length == 0) return;
  const Lane lane;
  const Head<kDim> head;
  const int length = static_cast<int>(place.length), own = lane.warp * 16, left = length - own;
  const Dim stride = 3 * in.hidden;
  const float scale = static_cast<float>(in.scale), exponent = scale * kLog2E,
              dropout_scale = static_cast<float>(in.dropout.scale);
  const T* const dout = saved.dcontext + place.first * in.hidden + place.head * kDim;

  head.k.start_fill(row_of(in, place, 1, 0), stride, place.length);
  head.q.start_fill(row_of(in, place, 0, 0), stride, place.length);
  head.v().start_fill(row_of(in, place, 2, 0), stride, place.length);
  head.dout.start_fill(dout, in.hidden, place.length);
  end_copies();
  const int tile = lane.warp / 4;  // that this warp's queries lie in
  const QueryTile<kHeadWarps> own_queries = head.queries(tile);
  sum_of_products<kDim>(dout + own * in.hidden,
                        saved.context + place.first * in.hidden + place.head * kDim + own * in.hidden, in.hidden, left,
                        own_queries.dots, own % kTileRows);
  if (const int i = static_cast<int>(threadIdx.x) % 32; i < 16)
    own_queries.log_sum[own % kTileRows + i] =
        i < left ? saved.log_sum[(place.first + own + i) * in.heads + place.head] * kLog2E : 0.0f;
  if (in.dropout.threshold != 0) own_queries.draw(in, place, tile * kTileRows);
  wait_for_copies<0>();
  __syncthreads();
  const OwnRows<T, kDim> v(head.v(), own);
  __syncthreads();  // ds may lie there now

  PieceD dk[kDim / 8], dv[kDim / 8];
  if (left > 0) {  // this warp's keys meet all queries
    std::uint32_t kept = ~0u;
#pragma unroll 1
    for (int piece = 0; 8 * piece < length; piece += kPartPieces) {
      const QueryTile<kHeadWarps> queries = head.queries(piece / kTilePieces);
      if (in.dropout.threshold != 0) kept = queries.kept[threadIdx.x] >> (piece % kTilePieces * 4);
      PieceD p[kPartPieces], ds[kPartPieces];
      OwnRows<T, kDim>(head.k, own).times_transposed(head.q, piece, p);
      v.times_transposed(head.dout, piece, ds);
      limit_keys(p, left, lane);
      differentiate(p, ds, queries, piece % kTilePieces, kept, exponent, dropout_scale, lane);
#pragma unroll
      for (int j = 0; j < kPartPieces; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          head.ds.pairs[(own + lane.g + 8 * half) * head.ds.kStride + 4 * (piece + j) + lane.t] =
              make_pair<T>(ds[j].values[2 * half], ds[j].values[2 * half + 1]);
      add_product<T, kDim>(dv, p, head.dout, piece);
      add_product<T, kDim>(dk, ds, head.q, piece);
    }
  }
  __syncthreads();
  if (left <= 0) return;

  // Nobody needs q and dO any more: this warp's rows of them are its room for results.
  head.q.template put<T>(own, dk, scale, lane);
  head.dout.template put<T>(own, dv, dropout_scale, lane);
  __syncwarp();
  head.q.store(own, gradient_of(in, saved, place, 1, own), stride, left);
  head.dout.store(own, gradient_of(in, saved, place, 2, own), stride, left);
  PieceD dq[kDim / 8];  // this warp's queries meet all keys
  for (int step = 0; 16 * step < length; ++step)
    add_product<T, kDim>(dq, head.ds.columns_as_rows(lane.warp, step), head.k, step);
  __syncwarp();
  head.q.template put<T>(own, dq, scale, lane);
  __syncwarp();
  head.q.store(own, gradient_of(in, saved, place, 0, own), stride, left);
}

}  // namespace

template <class T>
bool short_attention_backward(const AttentionInputs<T>& in, const Attention& options, const AttentionSaved<T>& saved,
                              cudaStream_t stream) {
  return in.head_dim <= 64 && dispatch_head_dim(in.head_dim, [&]<int kDim>() {
           if constexpr (kDim <= 64)
             launch_with_tiles(backward_kernel<T, kDim>, attention_grid(options, kShort), kThreadsOfHead,
                               Head<kDim>::kBytes, stream, in, saved);
         });
}
template bool short_attention_backward(const AttentionInputs<BFloat16>&, const Attention&,
                                       const AttentionSaved<BFloat16>&, cudaStream_t);
template bool short_attention_backward(const AttentionInputs<Float16>&, const Attention&,
                                       const AttentionSaved<Float16>&, cudaStream_t);

}  // namespace bertrand::cuda
