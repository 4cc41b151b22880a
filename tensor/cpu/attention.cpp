// Attention within each sequence, head by head. One task is one head of one sequence: it packs keys and values once and
// walks the queries in blocks, so that the probabilities never leave the cache and nothing of size length² is kept.
#include <cmath>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/dropout.h"
#include "tensor/cpu/gemm_tile.h"
#include "tensor/cpu/rows.h"

namespace bertrand::cpu {
namespace {

constexpr Dim kQueries = kTileRows * (96 / kTileRows);  // queries walked together

Dim ceiling(Dim n, Dim d) { return (n + d - 1) / d; }

/// The right-hand operand of a small product, packed.
template <class T>
class PackedRight {
 public:
  explicit PackedRight(T* memory) : panels_(memory) {}
  static Dim size(Dim depth, Dim columns) { return ceiling(columns, kTileColumns<T>) * panel_size<kTileColumns<T>, T>(depth); }

  void pack(const View<T>& b, Dim depth, Dim columns) {
    panel_ = panel_size<kTileColumns<T>, T>(depth);
    Packing<kTileColumns<T>, T>{b.transposed(), columns, depth, panels_}.pack();
  }
  const T* data() const { return panels_; }
  Dim panel() const { return panel_; }

 private:
  T* panels_;
  Dim panel_ = 0;
};

/// Elements that the left-hand operand takes when packed.
template <class T>
Dim left_size(Dim rows, Dim depth) {
  return ceiling(rows, kTileRows) * panel_size<kTileRows, T>(depth);
}

struct Product {
  Dim rows, columns, depth;
  bool add = false;
};

/// C (+)= A · B, packing A into `memory` on the way.
template <class T>
void multiply(const Product& size, const View<T>& a, const PackedRight<T>& b, T* c, Dim c_stride, T* memory) {
  Packing<kTileRows, T>{a, size.rows, size.depth, memory}.pack();
  multiply_packed<T>(size.rows, size.columns, size.depth, memory, panel_size<kTileRows, T>(size.depth), b.data(), b.panel(), c, c_stride,
                     size.add ? Start::value : Start::zero, nullptr);
}

/// Cuts one thread's memory into named parts.
template <class T>
class Cutter {
 public:
  explicit Cutter(T* memory) : next_(memory) {}
  T* take(Dim count) {
    T* part = next_;
    next_ += (count + 15) / 16 * 16;
    return part;
  }

 private:
  T* next_;
};

/// What a task knows: where its sequence and head lie.
struct Task {
  Dim first, length, head;
};

Task task_of(const Attention& options, Dim index) {
  const auto* offsets = elements<std::int32_t>(options.offsets);
  const Dim sequence = index / options.heads;
  return {offsets[sequence], offsets[sequence + 1] - offsets[sequence], index % options.heads};
}

}  // namespace

void CpuBackend::attention(const Tensor& qkv, const Attention& options, const Tensor& context, const Tensor& log_sum) {
  dispatch_real("attention", qkv.dtype(), [&]<class T>() {
    const Dim hidden = context.shape()[1], head_dim = hidden / options.heads, stride = 3 * hidden, longest = options.longest;
    const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(head_dim)));
    const Dim left = std::max(left_size<T>(kQueries, head_dim), left_size<T>(kQueries, longest));
    const Dim per_thread = PackedRight<T>::size(head_dim, longest) + PackedRight<T>::size(longest, head_dim) + left + kQueries * longest + 64;
    const Workspace workspace(*this, static_cast<std::size_t>(per_thread * pool_.threads()) * sizeof(T));
    const auto* keys = options.dropout ? elements<std::int64_t>(options.dropout.row_keys) : nullptr;

    pool_.run((options.offsets.elements() - 1) * options.heads, [&](Dim index, int thread) {
      const auto [first, length, head] = task_of(options, index);
      const T* const q = elements<T>(qkv) + first * stride + head * head_dim;
      Cutter<T> memory(workspace.as<T>() + thread * per_thread);
      PackedRight<T> k(memory.take(PackedRight<T>::size(head_dim, longest)));
      PackedRight<T> v(memory.take(PackedRight<T>::size(longest, head_dim)));
      T* const packed = memory.take(left);
      T* const scores = memory.take(kQueries * longest);
      k.pack(View<T>{q + hidden, 1, stride}, head_dim, length);      // keys as columns
      v.pack(View<T>{q + 2 * hidden, stride, 1}, length, head_dim);
      for (Dim i = 0; i < length; i += kQueries) {
        const Dim queries = std::min(kQueries, length - i);
        multiply<T>(Product{queries, length, head_dim}, View<T>{q + i * stride, stride, 1}, k, scores, length, packed);
        for (Dim r = 0; r < queries; ++r) {
          T* const row = scores + r * length;
          const T most = row_max(row, length);
          const T total = row_exp(row, length, scale, most, row);
          const Dim token = first + i + r;
          writable<T>(log_sum)[token * options.heads + head] =
              static_cast<T>(static_cast<double>(scale) * static_cast<double>(most) + std::log(static_cast<double>(total)));
          const Lanes<T> inverse(T(1) / total);
          if (keys)
            for_dropout_row<T>(options.dropout, keys[token], static_cast<std::uint32_t>(head), length, [&](Dim c, Dim n, const Lanes<T>& multiplier) {
              (Lanes<T>::load(row + c, n) * inverse * multiplier).store(row + c, n);
            });
          else for_lanes<T>(length, [&](Dim c, Dim n) { (Lanes<T>::load(row + c, n) * inverse).store(row + c, n); });
        }
        multiply<T>(Product{queries, head_dim, length}, View<T>{scores, length, 1}, v,
                    writable<T>(context) + (first + i) * hidden + head * head_dim, hidden, packed);
      }
    });
  });
}

// With P = softmax(q kᵀ / √d) recomputed from the saved log sum, M the dropout's multipliers and O = (P∘M) v:
//   dv = (P∘M)ᵀ dO      dP = (dO vᵀ) ∘ M      dS = P ∘ (dP − rowsum(dO ∘ O)) / √d      dq = dS k      dk = dSᵀ q
void CpuBackend::attention_backward(const Tensor& qkv, const Attention& options, const Tensor& context, const Tensor& log_sum,
                                    const Tensor& dcontext, const Tensor& dqkv) {
  dispatch_real("attention_backward", qkv.dtype(), [&]<class T>() {
    const Dim hidden = context.shape()[1], head_dim = hidden / options.heads, stride = 3 * hidden, longest = options.longest;
    const T scale = static_cast<T>(1 / std::sqrt(static_cast<double>(head_dim)));
    const Dim left = std::max({left_size<T>(kQueries, std::max(head_dim, longest)), left_size<T>(longest, kQueries)});
    const Dim by_dim = PackedRight<T>::size(head_dim, longest), by_key = PackedRight<T>::size(longest, head_dim);
    const Dim by_query = PackedRight<T>::size(kQueries, head_dim), square = kQueries * longest;
    const Dim per_thread = 2 * by_dim + by_key + 2 * by_query + left + 2 * square + 8 * 16;
    const Workspace workspace(*this, static_cast<std::size_t>(per_thread * pool_.threads()) * sizeof(T));
    const auto* keys = options.dropout ? elements<std::int64_t>(options.dropout.row_keys) : nullptr;

    pool_.run((options.offsets.elements() - 1) * options.heads, [&](Dim index, int thread) {
      const auto [first, length, head] = task_of(options, index);
      const T* const q = elements<T>(qkv) + first * stride + head * head_dim;
      T* const dq = writable<T>(dqkv) + first * stride + head * head_dim;
      Cutter<T> memory(workspace.as<T>() + thread * per_thread);
      PackedRight<T> k_columns(memory.take(by_dim)), v_columns(memory.take(by_dim)), k_rows(memory.take(by_key));
      PackedRight<T> q_rows(memory.take(by_query)), do_rows(memory.take(by_query));
      T *const packed = memory.take(left), *const p = memory.take(square), *const dp = memory.take(square);
      k_columns.pack(View<T>{q + hidden, 1, stride}, head_dim, length);
      v_columns.pack(View<T>{q + 2 * hidden, 1, stride}, head_dim, length);
      k_rows.pack(View<T>{q + hidden, stride, 1}, length, head_dim);
      for (Dim i = 0; i < length; i += kQueries) {
        const Dim queries = std::min(kQueries, length - i);
        const View<T> q_block{q + i * stride, stride, 1};
        const Dim at = (first + i) * hidden + head * head_dim;
        const View<T> do_block{elements<T>(dcontext) + at, hidden, 1};
        multiply<T>(Product{queries, length, head_dim}, q_block, k_columns, p, length, packed);
        multiply<T>(Product{queries, length, head_dim}, do_block, v_columns, dp, length, packed);
        for (Dim r = 0; r < queries; ++r) {
          const Dim token = first + i + r;
          T *const p_row = p + r * length, *const dp_row = dp + r * length;
          const Lanes<T> saved(elements<T>(log_sum)[token * options.heads + head]), factor(scale);
          const Lanes<T> dot(row_dot(elements<T>(dcontext) + at + r * hidden, elements<T>(context) + at + r * hidden, head_dim));
          const auto step = [&](Dim c, Dim n, const Lanes<T>& multiplier) {
            const auto probability = exp(fma(Lanes<T>::load(p_row + c, n), factor, Lanes<T>(T(0)) - saved));
            const auto slope = fma(Lanes<T>::load(dp_row + c, n), multiplier, Lanes<T>(T(0)) - dot);
            (probability * slope * factor).store(dp_row + c, n);
            (probability * multiplier).store(p_row + c, n);
          };
          if (keys) for_dropout_row<T>(options.dropout, keys[token], static_cast<std::uint32_t>(head), length, step);
          else for_lanes<T>(length, [&](Dim c, Dim n) { step(c, n, Lanes<T>(T(1))); });
        }
        const bool add = i > 0;
        q_rows.pack(q_block, queries, head_dim);
        do_rows.pack(do_block, queries, head_dim);
        multiply<T>(Product{queries, head_dim, length}, View<T>{dp, length, 1}, k_rows, dq + i * stride, stride, packed);
        multiply<T>(Product{length, head_dim, queries, add}, View<T>{dp, 1, length}, q_rows, dq + hidden, stride, packed);
        multiply<T>(Product{length, head_dim, queries, add}, View<T>{p, 1, length}, do_rows, dq + 2 * hidden, stride, packed);
      }
    });
  });
}

}  // namespace bertrand::cpu
