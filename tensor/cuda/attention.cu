// Attention within each sequence, head by head. A warp owns one query (in backward one query or one key) and meets the
// others 32 at a time, one in each lane; what all warps of a block read is in shared memory. Probabilities are never
// stored: forward keeps a running maximum and sum, backward computes them again from the saved log sum (Dao et al.
// 2022).
#include "tensor/cuda/attention.h"
#include "tensor/cuda/dropout.h"

namespace bertrand::cuda {
namespace {

constexpr int kRows = kWarps;  // rows that a block owns, a warp each
constexpr int kTile = 32;      // rows that it meets at a time, a lane each
constexpr int kMostHeadDim = 256;
constexpr int kLaneColumns = kMostHeadDim / 32;  // of a row's head_dim, at most

/// Rows of head_dim numbers in shared memory, padded by one column, so that the lanes use different banks.
template <class C>
struct Tile {
  SharedSpan<C> values;
  int stride;

  __device__ Tile(std::int64_t& byte, int rows, int head_dim)
      : values(byte, rows * (head_dim + 1)), stride(head_dim + 1) {
    byte += static_cast<std::int64_t>(rows) * stride * static_cast<std::int64_t>(sizeof(C));
  }
  __device__ C at(int row, int column) const { return values[row * stride + column]; }

  /// All threads of the block fill it with `rows` rows from `from` on; rows after the sequence's end become 0.
  template <class T>
  __device__ void fill(const T* from, Dim row_stride, int rows, Dim left, int head_dim) const {
    for (int i = static_cast<int>(threadIdx.x); i < rows * head_dim; i += kThreads) {
      const int row = i / head_dim, column = i % head_dim;
      values[row * stride + column] = row < left ? load(from + row * row_stride + column) : C(0);
    }
  }
};
template <class C>
std::size_t tile_bytes(int rows, int head_dim) {
  return sizeof(C) * static_cast<std::size_t>(rows * (head_dim + 1));
}

/// a[row] · b[other]
template <class C>
__device__ C dot(const Tile<C>& a, int row, const Tile<C>& b, int other, int head_dim) {
  C total = 0;
  for (int c = 0; c < head_dim; ++c) total += a.at(row, c) * b.at(other, c);
  return total;
}

/// The columns of a row that this lane holds: lane, lane + 32, ….
template <class C>
struct LaneColumns {
  C values[kLaneColumns] = {};

  /// += Σ over the tile's rows of weight · row; each lane brings the weight of one row.
  __device__ void add(C weight, const Tile<C>& tile, int head_dim) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int row = 0; row < kTile; ++row) {
      const C w = __shfl_sync(kAllLanes, weight, row);
      for (int k = 0; k < kLaneColumns; ++k)
        if (lane + 32 * k < head_dim) values[k] += w * tile.at(row, lane + 32 * k);
    }
  }
  template <class T>
  __device__ void store(T* to, C factor, int head_dim) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int k = 0; k < kLaneColumns; ++k)
      if (lane + 32 * k < head_dim) to[lane + 32 * k] = convert<T>(values[k] * factor);
  }
};

/// What dropout makes of the probability of a query and a key.
template <class C, class T>
__device__ C multiplier(const AttentionInputs<T>& in, const AttentionPlace& place, Dim query, Dim key) {
  if (in.dropout.threshold == 0) return 1;
  const auto words = dropout_words(in.dropout, in.dropout.row_keys[place.first + query],
                                   static_cast<std::uint32_t>(place.head), key / 128, static_cast<int>(key % 16));
  return keeps(in.dropout, words, static_cast<int>(key % 128 / 16)) ? static_cast<C>(in.dropout.scale) : C(0);
}

template <class T>
__global__ void attention_kernel(AttentionInputs<T> in, T* context, Compute<T>* log_sum) {
  using C = Compute<T>;
  constexpr C kLeast = -std::numeric_limits<C>::infinity();
  const AttentionPlace place(in, kRows);
  const Dim first_query = place.row;
  if (first_query >= place.length) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, d = in.head_dim;
  const Dim query = first_query + warp, stride = 3 * in.hidden;
  const bool active = query < place.length;
  std::int64_t byte = 0;
  const Tile<C> q(byte, kRows, d), k(byte, kTile, d), v(byte, kTile, d);

  q.fill(row_of(in, place, 0, first_query), stride, kRows, place.length - first_query, d);
  LaneColumns<C> out;
  C most = kLeast, total = 0;
  for (Dim first = 0; first < place.length; first += kTile) {
    __syncthreads();
    k.fill(row_of(in, place, 1, first), stride, kTile, place.length - first, d);
    v.fill(row_of(in, place, 2, first), stride, kTile, place.length - first, d);
    __syncthreads();
    if (!active) continue;
    const Dim key = first + lane;
    const C score = key < place.length ? dot(q, warp, k, lane, d) * static_cast<C>(in.scale) : kLeast;
    const C before = most;
    most = Most{}(over_warp(score, Most{}), most);
    const C probability = std::exp(score - most), correction = std::exp(before - most);
    total = total * correction + warp_sum(probability);
    for (C& value : out.values) value *= correction;
    out.add(key < place.length ? probability * multiplier<C>(in, place, query, key) : C(0), v, d);
  }
  if (!active) return;
  const Dim token = place.first + query;
  out.store(context + token * in.hidden + place.head * d, 1 / total, d);
  if (lane == 0) log_sum[token * in.heads + place.head] = most + std::log(total);
}

// With P = softmax(q kᵀ / √d) computed again from the saved log sum, M the dropout's multipliers and O = (P∘M) v:
//   dv = (P∘M)ᵀ dO      dP = (dO vᵀ) ∘ M      dS = P ∘ (dP − rowsum(dO ∘ O)) / √d      dq = dS k      dk = dSᵀ q
template <class T>
__global__ void attention_dots_kernel(AttentionInputs<T> in, AttentionSaved<T> saved, Dim tokens) {
  const Dim row = static_cast<Dim>(blockIdx.x) * kWarps + threadIdx.x / 32;  // of [tokens · heads, head_dim]
  if (row >= tokens * in.heads) return;
  Compute<T> total = 0;
  for (Dim c = row * in.head_dim + threadIdx.x % 32; c < (row + 1) * in.head_dim; c += 32)
    total += load(saved.context + c) * load(saved.dcontext + c);
  total = warp_sum(total);
  if (threadIdx.x % 32 == 0) saved.dots[row] = total;
}

/// dq: a warp owns a query and meets the keys.
template <class T>
__global__ void attention_dq_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  using C = Compute<T>;
  const AttentionPlace place(in, kRows);
  const Dim first_query = place.row;
  if (first_query >= place.length) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, d = in.head_dim;
  const Dim query = first_query + warp, stride = 3 * in.hidden;
  const bool active = query < place.length;
  std::int64_t byte = 0;
  const Tile<C> q(byte, kRows, d), dout(byte, kRows, d), k(byte, kTile, d), v(byte, kTile, d);

  q.fill(row_of(in, place, 0, first_query), stride, kRows, place.length - first_query, d);
  dout.fill(saved.dcontext + (place.first + first_query) * in.hidden + place.head * d, in.hidden, kRows,
            place.length - first_query, d);
  const Dim row = (place.first + query) * in.heads + place.head;
  const C log_sum = active ? saved.log_sum[row] : C(0), dots = active ? saved.dots[row] : C(0);
  LaneColumns<C> dq;
  for (Dim first = 0; first < place.length; first += kTile) {
    __syncthreads();
    k.fill(row_of(in, place, 1, first), stride, kTile, place.length - first, d);
    v.fill(row_of(in, place, 2, first), stride, kTile, place.length - first, d);
    __syncthreads();
    if (!active) continue;
    const Dim key = first + lane;
    C ds = 0;
    if (key < place.length) {
      const C probability = std::exp(dot(q, warp, k, lane, d) * static_cast<C>(in.scale) - log_sum);
      ds = probability * (dot(dout, warp, v, lane, d) * multiplier<C>(in, place, query, key) - dots);
    }
    dq.add(ds, k, d);
  }
  if (active) dq.store(gradient_of(in, saved, place, 0, query), static_cast<C>(in.scale), d);
}

/// dk and dv: a warp owns a key and meets the queries.
template <class T>
__global__ void attention_dkv_kernel(AttentionInputs<T> in, AttentionSaved<T> saved) {
  using C = Compute<T>;
  const AttentionPlace place(in, kRows);
  const Dim first_key = place.row;
  if (first_key >= place.length) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32, d = in.head_dim;
  const Dim key = first_key + warp, stride = 3 * in.hidden;
  const bool active = key < place.length;
  std::int64_t byte = 0;
  const Tile<C> k(byte, kRows, d), v(byte, kRows, d), q(byte, kTile, d), dout(byte, kTile, d);

  k.fill(row_of(in, place, 1, first_key), stride, kRows, place.length - first_key, d);
  v.fill(row_of(in, place, 2, first_key), stride, kRows, place.length - first_key, d);
  LaneColumns<C> dk, dv;
  for (Dim first = 0; first < place.length; first += kTile) {
    __syncthreads();
    q.fill(row_of(in, place, 0, first), stride, kTile, place.length - first, d);
    dout.fill(saved.dcontext + (place.first + first) * in.hidden + place.head * d, in.hidden, kTile,
              place.length - first, d);
    __syncthreads();
    if (!active) continue;
    const Dim query = first + lane, row = (place.first + query) * in.heads + place.head;
    C kept = 0, ds = 0;
    if (query < place.length) {
      const C probability = std::exp(dot(q, lane, k, warp, d) * static_cast<C>(in.scale) - saved.log_sum[row]);
      const C factor = multiplier<C>(in, place, query, key);
      kept = probability * factor;
      ds = probability * (dot(dout, lane, v, warp, d) * factor - saved.dots[row]);
    }
    dv.add(kept, dout, d);
    dk.add(ds, q, d);
  }
  if (!active) return;
  dk.store(gradient_of(in, saved, place, 1, key), static_cast<C>(in.scale), d);
  dv.store(gradient_of(in, saved, place, 2, key), C(1), d);
}

template <class T>
AttentionInputs<T> inputs(const Tensor& qkv, const Attention& options, const DropoutArguments& dropout,
                          const IndexCheck& check) {
  const Dim hidden = qkv.shape()[1] / 3;
  const auto head_dim = static_cast<int>(hidden / options.heads);
  if (head_dim > kMostHeadDim)
    fail(Failure::usage, "attention: expected heads of at most {} columns on cuda, got {}", kMostHeadDim, head_dim);
  return {qkv.as<T>(),
          options.offsets.as<std::int32_t>(),
          options.offsets.elements() - 1,
          qkv.shape()[0],
          hidden,
          options.heads,
          head_dim,
          static_cast<int>(options.longest),
          1 / std::sqrt(static_cast<double>(head_dim)),
          dropout,
          check};
}

template <class T>
constexpr bool kHalf = !std::is_same_v<T, Compute<T>>;

}  // namespace

void CudaBackend::attention(const Tensor& qkv, const Attention& options, const Tensor& context, const Tensor& log_sum) {
  dispatch_real("attention", qkv.dtype(), [&]<class T>() {
    const AttentionInputs<T> in = inputs<T>(qkv, options, arguments(options.dropout), reports(kOffsets));
    if constexpr (kHalf<T>)
      if (attention_on_tensor_cores(in, options, context.as<T>(), in_compute<T>(log_sum), stream())) return;
    const std::size_t bytes = tile_bytes<Compute<T>>(kRows + 2 * kTile, in.head_dim);
    launch_with_tiles(attention_kernel<T>, attention_grid(options, kRows), kThreads, bytes, stream(), in,
                      context.as<T>(), in_compute<T>(log_sum));
  });
}

void CudaBackend::attention_backward(const Tensor& qkv, const Attention& options, const Tensor& context,
                                     const Tensor& log_sum, const Tensor& dcontext, const Tensor& dqkv) {
  dispatch_real("attention_backward", qkv.dtype(), [&]<class T>() {
    const AttentionInputs<T> in = inputs<T>(qkv, options, arguments(options.dropout), reports(kOffsetsBackward));
    const Dim tokens = qkv.shape()[0];
    const Workspace dots(*this, tokens * in.heads * static_cast<Dim>(sizeof(Compute<T>)));
    const AttentionSaved<T> saved{context.as<T>(), dcontext.as<T>(), in_compute<T>(log_sum), dots.as<Compute<T>>(),
                                  dqkv.as<T>()};
    if constexpr (kHalf<T>)
      if (attention_backward_on_tensor_cores(in, options, saved, stream())) return;
    const std::size_t bytes = tile_bytes<Compute<T>>(2 * kRows + 2 * kTile, in.head_dim);
    launch(attention_dots_kernel<T>, blocks(tokens * in.heads, kWarps), kThreads, 0, stream(), in, saved, tokens);
    launch_with_tiles(attention_dq_kernel<T>, attention_grid(options, kRows), kThreads, bytes, stream(), in, saved);
    launch_with_tiles(attention_dkv_kernel<T>, attention_grid(options, kRows), kThreads, bytes, stream(), in, saved);
  });
}

}  // namespace bertrand::cuda
