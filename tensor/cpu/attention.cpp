// Attention within each sequence, head by head. One task is one head of one sequence: it packs keys and values once and
// walks the queries in blocks, so that the probabilities never leave the cache and nothing of size length² is kept.
#include <cmath>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/cutter.h"
#include "tensor/cpu/dropout.h"
#include "tensor/cpu/gemm_tile.h"
#include "tensor/cpu/rows.h"

namespace bertrand::cpu {
namespace {

// Below, T is what tensors hold, C = Compute<T> what everything on the way is in, and Factor<T> what a product's
// factors are in, probabilities too: bf16 for bf16, else C.

template <class T>
inline constexpr Dim kQueries = kTileRows<PanelOf<T>>*(96 / kTileRows<PanelOf<T>>);  // that are walked together

/// Numbers from one row of scores to the next: whole vectors, so that neither the product nor what follows has an edge.
/// No product and no sum takes what stands beyond a row's end.
template <class T>
Dim row_size(Dim length) {
  return round_up(length, kWholeColumns<PanelOf<T>, Compute<T>>);
}

/// The right-hand operand of a small product of T, packed.
template <class T>
class PackedRight {
 public:
  using P = PanelOf<T>;
  explicit PackedRight(P* memory) : panels_(memory) {}
  static Dim size(Dim depth, Dim columns) {
    return ceiling(columns, kTileColumns<P>) * panel_size<Side::right, P>(depth);
  }

  /// b is depth × lines; the product has `columns`, lines or up to the end of a row of scores.
  void pack(const View<T>& b, Dim depth, Dim lines, Dim columns) {
    panel_ = panel_size<Side::right, P>(depth);
    RightPacking<T>{b.transposed(), lines, depth, panels_, columns}.pack();
  }
  const P* data() const { return panels_; }
  Dim panel() const { return panel_; }

 private:
  P* panels_;
  Dim panel_ = 0;
};

/// Elements that the left-hand operand takes when packed.
template <class T>
Dim left_size(Dim rows, Dim depth) {
  return ceiling(rows, kTileRows<PanelOf<T>>) * panel_size<Side::left, PanelOf<T>>(depth);
}

struct SmallProduct {
  Dim rows, columns, depth;
  bool add = false;
};

/// c (+)= a · b; `memory` is for what of a is packed.
template <class T, class A>
void multiply(const SmallProduct& size, const View<A>& a, const PackedRight<T>& b, Compute<T>* c, Dim c_stride,
              PanelOf<T>* memory) {
  using P = PanelOf<T>;
  const LeftPacking<A> left{a, size.rows, size.depth, memory};
  for (Dim piece = 0; piece < left.pieces(); ++piece) left.pack(piece);
  const auto nothing = [](Dim, Dim, Compute<T>*) {};
  multiply_prepared<P, Compute<T>>({size.rows, size.columns, size.depth, left.panels(), b.data(), b.panel(), c,
                                    c_stride, kTileRows<P> * c_stride, size.add ? Start::value : Start::zero},
                                   nothing, nothing);
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

/// What the numbers of `computed` are rounded to before they are factors: the same place if they need not be.
template <class T>
Factor<T>* take_factors(Cutter& memory, Compute<T>* computed, Dim count) {
  if constexpr (std::is_same_v<Factor<T>, Compute<T>>) return computed;
  else return memory.take<Factor<T>>(count);
}

/// What a task knows: where its sequence and head lie.
struct Task {
  Dim first, length, head;
};

Task task_of(const Attention& options, Dim index) {
  const auto* offsets = options.offsets.as<std::int32_t>();
  const Dim sequence = index / options.heads;
  return {offsets[sequence], offsets[sequence + 1] - offsets[sequence], index % options.heads};
}

/// Asks for the rows of one head, which are far apart in memory: the processor does not foresee where the next begins.
/// It is for speed alone.
template <class T>
void prefetch(const T* rows, Dim stride, Dim count, Dim head_dim) {
  for (Dim r = 0; r < count; ++r)
    for (Dim c = 0; c < head_dim; c += static_cast<Dim>(64 / sizeof(T)))
      __builtin_prefetch(rows + r * stride + c, 0, 2);
}

/// One thread's memory for a task.
template <class T, class C = Compute<T>>
struct ForwardMemory {
  PackedRight<T> k, v;
  PanelOf<T>* packed;        ///< an operand on its way
  C* scores;                 ///< [kQueries, row_size(longest)]
  Factor<T>* probabilities;  ///< of the same size
  C* beside;                 ///< as Sheet<T> takes it

  ForwardMemory(Cutter& memory, Dim head_dim, Dim longest)
      : k(memory.take<PanelOf<T>>(PackedRight<T>::size(head_dim, longest))),
        v(memory.take<PanelOf<T>>(PackedRight<T>::size(longest, head_dim))),
        packed(memory.take<PanelOf<T>>(left_size<T>(kQueries<T>, std::max(head_dim, longest)))),
        scores(memory.take<C>(kQueries<T> * row_size<T>(longest))),
        probabilities(take_factors<T>(memory, scores, kQueries<T> * row_size<T>(longest))),
        beside(memory.take<C>(Sheet<T>::size(kQueries<T>, head_dim))) {}
};

/// The same to go back.
template <class T, class C = Compute<T>>
struct BackwardMemory {
  PackedRight<T> k_columns, v_columns, k_rows, q_rows, do_rows;
  PanelOf<T>* packed;
  C *p, *dp;  ///< probabilities and their gradients: [kQueries, row_size(longest)]
  Factor<T>*p_factors, *dp_factors;
  C *dq, *dk, *dv;  ///< sheets, as Sheet<T> takes them

  BackwardMemory(Cutter& memory, Dim head_dim, Dim longest)
      : k_columns(memory.take<PanelOf<T>>(PackedRight<T>::size(head_dim, longest))),
        v_columns(memory.take<PanelOf<T>>(PackedRight<T>::size(head_dim, longest))),
        k_rows(memory.take<PanelOf<T>>(PackedRight<T>::size(longest, head_dim))),
        q_rows(memory.take<PanelOf<T>>(PackedRight<T>::size(kQueries<T>, head_dim))),
        do_rows(memory.take<PanelOf<T>>(PackedRight<T>::size(kQueries<T>, head_dim))),
        packed(memory.take<PanelOf<T>>(
            std::max(left_size<T>(kQueries<T>, std::max(head_dim, longest)), left_size<T>(longest, kQueries<T>)))),
        p(memory.take<C>(kQueries<T> * row_size<T>(longest))),
        dp(memory.take<C>(kQueries<T> * row_size<T>(longest))),
        p_factors(take_factors<T>(memory, p, kQueries<T> * row_size<T>(longest))),
        dp_factors(take_factors<T>(memory, dp, kQueries<T> * row_size<T>(longest))),
        dq(memory.take<C>(Sheet<T>::size(kQueries<T>, head_dim))),
        dk(memory.take<C>(Sheet<T>::size(longest, head_dim))),
        dv(memory.take<C>(Sheet<T>::size(longest, head_dim))) {}
};

/// One head of one sequence on the way back.
template <class T, class C = Compute<T>>
struct HeadGradient {
  const Attention& options;
  Task task;
  const T *context, *dcontext;  ///< of the first token and this head
  Dim hidden;                   ///< from one token to the next
  Dim columns;                  ///< of a row of scores
  const C* log_sum;
  C scale;

  /// Rows of scores p and of dp = dO vᵀ of `queries` queries from row i on become their factors, P ∘ M and dS.
  void differentiate(Dim i, Dim queries, const BackwardMemory<T>& memory) const {
    const auto* keys = options.dropout ? options.dropout.row_keys.as<std::int64_t>() : nullptr;
    for (Dim r = 0; r < queries; ++r) {
      const Dim token = task.first + i + r, at = (i + r) * hidden, row = r * columns;
      const C *const p = memory.p + row, *const dp = memory.dp + row;
      Factor<T>*const p_factors = memory.p_factors + row, *const dp_factors = memory.dp_factors + row;
      const Lanes<C> saved(log_sum[token * options.heads + task.head]), factor(scale),
          dot(row_dot(dcontext + at, context + at, hidden / options.heads));
      const auto step = [&](Dim c, Dim n, const Lanes<C>& multiplier) {
        const auto probability = exp(fma(Lanes<C>::load(p + c, n), factor, Lanes<C>(C(0)) - saved));
        const auto slope = fma(Lanes<C>::load(dp + c, n), multiplier, Lanes<C>(C(0)) - dot);
        (probability * slope * factor).store(dp_factors + c, n);
        (probability * multiplier).store(p_factors + c, n);
      };
      if (keys) for_dropout_row<C>(options.dropout, keys[token], static_cast<std::uint32_t>(task.head), columns, step);
      else for_lanes<C>(columns, [&](Dim c, Dim n) { step(c, n, Lanes<C>(C(1))); });
    }
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
    const auto per_thread = static_cast<Dim>(bytes_of<ForwardMemory<T>>(head_dim, longest));
    const Workspace workspace(*this, static_cast<std::size_t>(per_thread * pool_.threads()));
    const auto* keys = options.dropout ? options.dropout.row_keys.as<std::int64_t>() : nullptr;

    pool_.run((options.offsets.elements() - 1) * options.heads, [&](Dim index, int thread) {
      const auto [first, length, head] = task_of(options, index);
      const Dim columns = row_size<T>(length);
      const T* const q = qkv.as<T>() + first * stride + head * head_dim;
      Cutter memory(workspace.as<std::byte>() + thread * per_thread);
      auto [k, v, packed, scores, probabilities, beside] = ForwardMemory<T>(memory, head_dim, longest);
      prefetch(q, stride, std::min(length, kQueries<T>), head_dim);
      prefetch(q + 2 * hidden, stride, length, head_dim);
      k.pack(View<T>{q + hidden, 1, stride}, head_dim, length, columns);  // keys as columns
      v.pack(View<T>{q + 2 * hidden, stride, 1}, length, head_dim, head_dim);
      for (Dim i = 0; i < length; i += kQueries<T>) {
        const Dim queries = std::min(kQueries<T>, length - i);
        multiply<T>(SmallProduct{queries, columns, head_dim}, View<T>{q + i * stride, stride, 1}, k, scores, columns,
                    packed);
        for (Dim r = 0; r < queries; ++r) {
          C* const row = scores + r * columns;
          Factor<T>* const factors = probabilities + r * columns;
          const C most = row_max(row, length);
          const C total = row_exp(row, length, scale, most);
          const Dim token = first + i + r;
          log_sum.as<C>()[token * options.heads + head] = static_cast<C>(
              static_cast<double>(scale) * static_cast<double>(most) + std::log(static_cast<double>(total)));
          const Lanes<C> inverse(C(1) / total);
          const auto finish = [&](Dim c, Dim n, const Lanes<C>& multiplier) {
            (Lanes<C>::load(row + c, n) * inverse * multiplier).store(factors + c, n);
          };
          if (keys) for_dropout_row<C>(options.dropout, keys[token], static_cast<std::uint32_t>(head), columns, finish);
          else
            for_lanes<C>(columns, [&](Dim c, Dim n) { (Lanes<C>::load(row + c, n) * inverse).store(factors + c, n); });
        }
        const Sheet<T> o(context.as<T>() + (first + i) * hidden + head * head_dim, hidden, beside, head_dim);
        multiply<T>(SmallProduct{queries, head_dim, length}, View<Factor<T>>{probabilities, columns, 1}, v, o.data,
                    o.stride, packed);
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
    const auto per_thread = static_cast<Dim>(bytes_of<BackwardMemory<T>>(head_dim, longest));
    const Workspace workspace(*this, static_cast<std::size_t>(per_thread * pool_.threads()));
    pool_.run((options.offsets.elements() - 1) * options.heads, [&](Dim index, int thread) {
      const Task task = task_of(options, index);
      const auto [first, length, head] = task;
      const Dim start = first * hidden + head * head_dim, columns = row_size<T>(length);
      const T* const q = qkv.as<T>() + first * stride + head * head_dim;
      T* const dq = dqkv.as<T>() + first * stride + head * head_dim;
      Cutter memory(workspace.as<std::byte>() + thread * per_thread);
      BackwardMemory<T> own(memory, head_dim, longest);
      auto& [k_columns, v_columns, k_rows, q_rows, do_rows, packed, p, dp, p_factors, dp_factors, dq_beside, dk_beside,
             dv_beside] = own;
      const HeadGradient<T> gradient{options, task,    context.as<T>() + start, dcontext.as<T>() + start,
                                     hidden,  columns, log_sum.as<C>(),         scale};
      const Sheet<T> dk(dq + hidden, stride, dk_beside, head_dim), dv(dq + 2 * hidden, stride, dv_beside, head_dim);
      prefetch(q + 2 * hidden, stride, length, head_dim);
      k_columns.pack(View<T>{q + hidden, 1, stride}, head_dim, length, columns);
      v_columns.pack(View<T>{q + 2 * hidden, 1, stride}, head_dim, length, columns);
      k_rows.pack(View<T>{q + hidden, stride, 1}, length, head_dim, head_dim);
      for (Dim i = 0; i < length; i += kQueries<T>) {
        const Dim queries = std::min(kQueries<T>, length - i);
        const View<T> q_block{q + i * stride, stride, 1}, do_block{gradient.dcontext + i * hidden, hidden, 1};
        prefetch(do_block.data, hidden, queries, head_dim);
        prefetch(gradient.context + i * hidden, hidden, queries, head_dim);
        multiply<T>(SmallProduct{queries, columns, head_dim}, q_block, k_columns, p, columns, packed);
        multiply<T>(SmallProduct{queries, columns, head_dim}, do_block, v_columns, dp, columns, packed);
        gradient.differentiate(i, queries, own);
        const bool add = i > 0;
        const Sheet<T> dq_block(dq + i * stride, stride, dq_beside, head_dim);
        q_rows.pack(q_block, queries, head_dim, head_dim);
        do_rows.pack(do_block, queries, head_dim, head_dim);
        multiply<T>(SmallProduct{queries, head_dim, length}, View<Factor<T>>{dp_factors, columns, 1}, k_rows,
                    dq_block.data, dq_block.stride, packed);
        dq_block.finish(queries);
        multiply<T>(SmallProduct{length, head_dim, queries, add}, View<Factor<T>>{dp_factors, 1, columns}, q_rows,
                    dk.data, dk.stride, packed);
        multiply<T>(SmallProduct{length, head_dim, queries, add}, View<Factor<T>>{p_factors, 1, columns}, do_rows,
                    dv.data, dv.stride, packed);
      }
      dk.finish(length);
      dv.finish(length);
    });
  });
}

std::size_t CpuBackend::attention_backward_workspace(const Tensor& qkv, const Attention& options) const {
  std::size_t per_thread = 0;
  dispatch_real("attention_backward", qkv.dtype(), [&]<class T>() {
    per_thread = bytes_of<BackwardMemory<T>>(qkv.shape()[1] / (3 * options.heads), options.longest);
  });
  return per_thread * static_cast<std::size_t>(pool_.threads());
}

}  // namespace bertrand::cpu
