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

// Below, T is what tensors hold and C = Compute<T> what everything on the way is in.

/// The right-hand operand of a small product, packed.
template <class C>
class PackedRight {
 public:
  explicit PackedRight(C* memory) : panels_(memory) {}
  static Dim size(Dim depth, Dim columns) {
    return ceiling(columns, kTileColumns<C>) * panel_size<kTileColumns<C>, C>(depth);
  }

  template <class T>
  void pack(const View<T>& b, Dim depth, Dim columns) {
    panel_ = panel_size<kTileColumns<C>, C>(depth);
    Packing<kTileColumns<C>, T>{b.transposed(), columns, depth, panels_}.pack();
  }
  const C* data() const { return panels_; }
  Dim panel() const { return panel_; }

 private:
  C* panels_;
  Dim panel_ = 0;
};

/// Elements that the left-hand operand takes when packed.
template <class C>
Dim left_size(Dim rows, Dim depth) {
  return ceiling(rows, kTileRows) * panel_size<kTileRows, C>(depth);
}

struct SmallProduct {
  Dim rows, columns, depth;
  bool add = false;
};

/// c (+)= a · b, packing a into `memory` on the way.
template <class T, class C = Compute<T>>
void multiply(const SmallProduct& size, const View<T>& a, const PackedRight<C>& b, C* c, Dim c_stride, C* memory) {
  Packing<kTileRows, T>{a, size.rows, size.depth, memory}.pack();
  multiply_packed<C>(size.rows, size.columns, size.depth, memory, panel_size<kTileRows, C>(size.depth), b.data(),
                     b.panel(), c, c_stride, size.add ? Start::value : Start::zero, nullptr);
}

/// Rows of a tensor that a product fills: in their place where T is computed in, else on a sheet beside, to be rounded.
template <class T, class C = Compute<T>>
class Sheet {
 public:
  static constexpr bool kBeside = !std::is_same_v<T, C>;
  static Dim size(Dim rows, Dim columns) { return kBeside ? rows * columns : 0; }

  Sheet(T* place, Dim place_stride, C* beside, Dim columns)
      : place_(place), place_stride_(place_stride), columns_(columns) {
    if constexpr (kBeside) {
      data = beside;
      stride = columns;
    } else {
      data = place;
      stride = place_stride;
    }
  }
  /// Rounds `rows` rows into their place.
  void finish(Dim rows) const {
    if constexpr (kBeside)
      for (Dim r = 0; r < rows; ++r)
        for_lanes<C>(columns_, [&](Dim c, Dim n) {
          Lanes<C>::load(data + r * stride + c, n).store(place_ + r * place_stride_ + c, n);
        });
  }

  C* data;
  Dim stride;

 private:
  T* place_;
  Dim place_stride_, columns_;
};

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
  const auto* offsets = options.offsets.as<std::int32_t>();
  const Dim sequence = index / options.heads;
  return {offsets[sequence], offsets[sequence + 1] - offsets[sequence], index % options.heads};
}

/// Elements that one thread takes to go back.
template <class T, class C = Compute<T>>
struct BackwardSizes {
  Dim left, by_dim, by_key, by_query, square, all;

  BackwardSizes(Dim head_dim, Dim longest)
      : left(std::max(left_size<C>(kQueries, std::max(head_dim, longest)), left_size<C>(longest, kQueries))),
        by_dim(PackedRight<C>::size(head_dim, longest)),
        by_key(PackedRight<C>::size(longest, head_dim)),
        by_query(PackedRight<C>::size(kQueries, head_dim)),
        square(kQueries * longest),
        all(2 * by_dim + by_key + 2 * by_query + left + 2 * square + Sheet<T>::size(kQueries + 2 * longest, head_dim) +
            11 * 16) {}
};

/// The pieces of one thread's memory, in their order.
template <class T, class C = Compute<T>>
struct BackwardMemory {
  PackedRight<C> k_columns, v_columns, k_rows, q_rows, do_rows;
  C *packed, *p, *dp;  ///< an operand on its way, probabilities, their gradients
  C *dq, *dk, *dv;     ///< sheets, as Sheet<T> takes them

  BackwardMemory(Cutter<C> memory, const BackwardSizes<T>& sizes, Dim head_dim, Dim longest)
      : k_columns(memory.take(sizes.by_dim)),
        v_columns(memory.take(sizes.by_dim)),
        k_rows(memory.take(sizes.by_key)),
        q_rows(memory.take(sizes.by_query)),
        do_rows(memory.take(sizes.by_query)),
        packed(memory.take(sizes.left)),
        p(memory.take(sizes.square)),
        dp(memory.take(sizes.square)),
        dq(memory.take(Sheet<T>::size(kQueries, head_dim))),
        dk(memory.take(Sheet<T>::size(longest, head_dim))),
        dv(memory.take(Sheet<T>::size(longest, head_dim))) {}
};

/// One query's row of scores and of dO vᵀ.
template <class C>
struct ProbabilityRow {
  C *p, *dp;
  Dim length;
  C scale, log_sum, dot;

  /// p becomes P ∘ M and dp becomes dS; multipliers(step) calls step(column, n, M) for all columns.
  template <class Multipliers>
  void differentiate(const Multipliers& multipliers) const {
    const Lanes<C> saved(log_sum), factor(scale), dots(dot);
    multipliers([&](Dim c, Dim n, const Lanes<C>& multiplier) {
      const auto probability = exp(fma(Lanes<C>::load(p + c, n), factor, Lanes<C>(C(0)) - saved));
      const auto slope = fma(Lanes<C>::load(dp + c, n), multiplier, Lanes<C>(C(0)) - dots);
      (probability * slope * factor).store(dp + c, n);
      (probability * multiplier).store(p + c, n);
    });
  }
};

}  // namespace

void CpuBackend::attention(const Tensor& qkv, const Attention& options, const Tensor& context, const Tensor& log_sum) {
  check_offsets(kOffsets, options.offsets.as<std::int32_t>(), options.offsets.elements() - 1, qkv.shape()[0],
                options.longest);
  dispatch_real("attention", qkv.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim hidden = context.shape()[1], head_dim = hidden / options.heads, stride = 3 * hidden,
              longest = options.longest;
    const C scale = static_cast<C>(1 / std::sqrt(static_cast<double>(head_dim)));
    const Dim left = std::max(left_size<C>(kQueries, head_dim), left_size<C>(kQueries, longest));
    const Dim per_thread = PackedRight<C>::size(head_dim, longest) + PackedRight<C>::size(longest, head_dim) + left +
                           kQueries * longest + Sheet<T>::size(kQueries, head_dim) + 80;
    const Workspace workspace(*this, static_cast<std::size_t>(per_thread * pool_.threads()) * sizeof(C));
    const auto* keys = options.dropout ? options.dropout.row_keys.as<std::int64_t>() : nullptr;

    pool_.run((options.offsets.elements() - 1) * options.heads, [&](Dim index, int thread) {
      const auto [first, length, head] = task_of(options, index);
      const T* const q = qkv.as<T>() + first * stride + head * head_dim;
      Cutter<C> memory(workspace.as<C>() + thread * per_thread);
      PackedRight<C> k(memory.take(PackedRight<C>::size(head_dim, longest)));
      PackedRight<C> v(memory.take(PackedRight<C>::size(longest, head_dim)));
      C* const packed = memory.take(left);
      C* const scores = memory.take(kQueries * longest);
      C* const beside = memory.take(Sheet<T>::size(kQueries, head_dim));
      k.pack(View<T>{q + hidden, 1, stride}, head_dim, length);  // keys as columns
      v.pack(View<T>{q + 2 * hidden, stride, 1}, length, head_dim);
      for (Dim i = 0; i < length; i += kQueries) {
        const Dim queries = std::min(kQueries, length - i);
        multiply(SmallProduct{queries, length, head_dim}, View<T>{q + i * stride, stride, 1}, k, scores, length,
                 packed);
        for (Dim r = 0; r < queries; ++r) {
          C* const row = scores + r * length;
          const C most = row_max(row, length);
          const C total = row_exp(row, length, scale, most, row);
          const Dim token = first + i + r;
          log_sum.as<C>()[token * options.heads + head] = static_cast<C>(
              static_cast<double>(scale) * static_cast<double>(most) + std::log(static_cast<double>(total)));
          const Lanes<C> inverse(C(1) / total);
          if (keys)
            for_dropout_row<C>(options.dropout, keys[token], static_cast<std::uint32_t>(head), length,
                               [&](Dim c, Dim n, const Lanes<C>& multiplier) {
                                 (Lanes<C>::load(row + c, n) * inverse * multiplier).store(row + c, n);
                               });
          else for_lanes<C>(length, [&](Dim c, Dim n) { (Lanes<C>::load(row + c, n) * inverse).store(row + c, n); });
        }
        const Sheet<T> o(context.as<T>() + (first + i) * hidden + head * head_dim, hidden, beside, head_dim);
        multiply(SmallProduct{queries, head_dim, length}, View<C>{scores, length, 1}, v, o.data, o.stride, packed);
        o.finish(queries);
      }
    });
  });
}

// With P = softmax(q kᵀ / √d) recomputed from the saved log sum, M the dropout's multipliers and O = (P∘M) v:
//   dv = (P∘M)ᵀ dO      dP = (dO vᵀ) ∘ M      dS = P ∘ (dP − rowsum(dO ∘ O)) / √d      dq = dS k      dk = dSᵀ q
void CpuBackend::attention_backward(const Tensor& qkv, const Attention& options, const Tensor& context,
                                    const Tensor& log_sum, const Tensor& dcontext, const Tensor& dqkv) {
  check_offsets(kOffsetsBackward, options.offsets.as<std::int32_t>(), options.offsets.elements() - 1, qkv.shape()[0],
                options.longest);
  dispatch_real("attention_backward", qkv.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim hidden = context.shape()[1], head_dim = hidden / options.heads, stride = 3 * hidden,
              longest = options.longest;
    const C scale = static_cast<C>(1 / std::sqrt(static_cast<double>(head_dim)));
    const BackwardSizes<T> sizes(head_dim, longest);
    const Workspace workspace(*this, static_cast<std::size_t>(sizes.all * pool_.threads()) * sizeof(C));
    const auto* keys = options.dropout ? options.dropout.row_keys.as<std::int64_t>() : nullptr;

    pool_.run((options.offsets.elements() - 1) * options.heads, [&](Dim index, int thread) {
      const auto [first, length, head] = task_of(options, index);
      const T* const q = qkv.as<T>() + first * stride + head * head_dim;
      T* const dq = dqkv.as<T>() + first * stride + head * head_dim;
      BackwardMemory<T> memory(Cutter<C>(workspace.as<C>() + thread * sizes.all), sizes, head_dim, longest);
      auto& [k_columns, v_columns, k_rows, q_rows, do_rows, packed, p, dp, dq_beside, dk_beside, dv_beside] = memory;
      const Sheet<T> dk(dq + hidden, stride, dk_beside, head_dim), dv(dq + 2 * hidden, stride, dv_beside, head_dim);
      k_columns.pack(View<T>{q + hidden, 1, stride}, head_dim, length);
      v_columns.pack(View<T>{q + 2 * hidden, 1, stride}, head_dim, length);
      k_rows.pack(View<T>{q + hidden, stride, 1}, length, head_dim);
      for (Dim i = 0; i < length; i += kQueries) {
        const Dim queries = std::min(kQueries, length - i);
        const View<T> q_block{q + i * stride, stride, 1};
        const Dim at = (first + i) * hidden + head * head_dim;
        const View<T> do_block{dcontext.as<T>() + at, hidden, 1};
        multiply(SmallProduct{queries, length, head_dim}, q_block, k_columns, p, length, packed);
        multiply(SmallProduct{queries, length, head_dim}, do_block, v_columns, dp, length, packed);
        for (Dim r = 0; r < queries; ++r) {
          const Dim token = first + i + r;
          const ProbabilityRow<C> row{
              p + r * length,
              dp + r * length,
              length,
              scale,
              log_sum.as<C>()[token * options.heads + head],
              row_dot(dcontext.as<T>() + at + r * hidden, context.as<T>() + at + r * hidden, head_dim)};
          row.differentiate([&, head = head, length = length](const auto& step) {
            if (keys) for_dropout_row<C>(options.dropout, keys[token], static_cast<std::uint32_t>(head), length, step);
            else for_lanes<C>(length, [&](Dim c, Dim n) { step(c, n, Lanes<C>(C(1))); });
          });
        }
        const bool add = i > 0;
        const Sheet<T> dq_block(dq + i * stride, stride, dq_beside, head_dim);
        q_rows.pack(q_block, queries, head_dim);
        do_rows.pack(do_block, queries, head_dim);
        multiply(SmallProduct{queries, head_dim, length}, View<C>{dp, length, 1}, k_rows, dq_block.data,
                 dq_block.stride, packed);
        dq_block.finish(queries);
        multiply(SmallProduct{length, head_dim, queries, add}, View<C>{dp, 1, length}, q_rows, dk.data, dk.stride,
                 packed);
        multiply(SmallProduct{length, head_dim, queries, add}, View<C>{p, 1, length}, do_rows, dv.data, dv.stride,
                 packed);
      }
      dk.finish(length);
      dv.finish(length);
    });
  });
}

std::size_t CpuBackend::attention_backward_workspace(const Tensor& qkv, const Attention& options) const {
  Dim bytes = 0;
  dispatch_real("attention_backward", qkv.dtype(), [&]<class T>() {
    bytes = BackwardSizes<T>(qkv.shape()[1] / (3 * options.heads), options.longest).all * pool_.threads() *
            static_cast<Dim>(sizeof(Compute<T>));
  });
  return static_cast<std::size_t>(bytes);
}

}  // namespace bertrand::cpu
