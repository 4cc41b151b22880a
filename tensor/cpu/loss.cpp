// Losses: forward to one number, backward to every logit.
#include <cmath>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/rows.h"
#include "tensor/cpu/tree.h"

namespace bertrand::cpu {
namespace {

/// `value` in one lane, 0 in the others.
template <class C>
Lanes<C> one_hot(Dim lane, C value) {
  alignas(64) C lanes[Lanes<C>::kCount] = {};
  lanes[lane] = value;
  return Lanes<C>::load(lanes);
}

}  // namespace

void CpuBackend::cross_entropy(const Tensor& logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                               const Tensor& out) {
  dispatch_real("cross_entropy", logits.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim rows = logits.shape().rows(), columns = logits.shape().columns();
    const auto* label = labels.as<std::int32_t>();
    check_indices(kLabels, label, rows, std::numeric_limits<std::int32_t>::min(), columns);
    const Workspace losses(*this, static_cast<std::size_t>(rows) * sizeof(double));
    parallel(rows, row_block(columns), [&](Dim begin, Dim end) {
      for (Dim r = begin; r < end; ++r) {
        losses.as<double>()[r] = 0;
        log_sum.as<C>()[r] = 0;
        if (label[r] < 0) continue;
        const T* x = logits.as<T>() + r * columns;
        const C most = row_max(x, columns);
        // In double, so that the library's last bit is lost in the rounding to f32.
        const double log_total =
            static_cast<double>(most) + std::log(static_cast<double>(row_exp_sum(x, columns, most)));
        log_sum.as<C>()[r] = static_cast<C>(log_total);
        losses.as<double>()[r] = log_total - static_cast<double>(C(x[label[r]]));
      }
    });
    out.as<C>()[0] = static_cast<C>(tree_sum(losses.as<double>(), rows) / denominator);
  });
}

void CpuBackend::cross_entropy_backward(const Tensor& logits, const Tensor& labels, double denominator,
                                        const Tensor& log_sum, const Tensor& dy, const Tensor& dlogits) {
  dispatch_real("cross_entropy_backward", logits.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim rows = logits.shape().rows(), columns = logits.shape().columns();
    const auto* label = labels.as<std::int32_t>();
    check_indices(kLabelsBackward, label, rows, std::numeric_limits<std::int32_t>::min(), columns);
    const C factor = static_cast<C>(static_cast<double>(dy.as<C>()[0]) / denominator);
    parallel(rows, row_block(columns), [&](Dim begin, Dim end) {
      for (Dim r = begin; r < end; ++r) {
        const T* x = logits.as<T>() + r * columns;
        T* dx = dlogits.as<T>() + r * columns;
        if (label[r] < 0) {
          std::fill_n(dx, columns, T(0));
          continue;
        }
        // dx = (softmax(x) − one-hot) dy / denominator; the label's own is rounded once.
        const Lanes<C> offset(log_sum.as<C>()[r]), f(factor);
        const Dim target = label[r], first = target / Lanes<C>::kCount * Lanes<C>::kCount;
        for_lanes<C>(columns, [&](Dim c, Dim n) {
          auto slope = exp(Lanes<C>::load(x + c, n) - offset) * f;
          if (c == first) slope = slope - one_hot<C>(target - first, factor);
          slope.store(dx + c, n);
        });
      }
    });
  });
}

namespace {

/// The loss of an output v with target t, and its derivative by v.
double point_loss_of(PointLoss loss, double v, double t) {
  switch (loss) {
    case PointLoss::squared_error: return (v - t) * (v - t);
    case PointLoss::binary_cross_entropy_with_logits:
      return std::max(v, 0.0) - v * t + std::log1p(std::exp(-std::abs(v)));
  }
  __builtin_unreachable();
}

double point_loss_slope(PointLoss loss, double v, double t) {
  switch (loss) {
    case PointLoss::squared_error: return 2 * (v - t);
    case PointLoss::binary_cross_entropy_with_logits: return 1 / (1 + std::exp(-v)) - t;
  }
  __builtin_unreachable();
}

}  // namespace

void CpuBackend::point_loss(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                            const Tensor& out) {
  dispatch_real("point_loss", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Workspace losses(*this, static_cast<std::size_t>(x.elements()) * sizeof(double));
    parallel(x.elements(), 4096, [&](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) {
        const double v = static_cast<double>(C(x.as<T>()[i])), t = static_cast<double>(C(target.as<T>()[i]));
        losses.as<double>()[i] = point_loss_of(loss, v, t);
      }
    });
    out.as<C>()[0] = static_cast<C>(tree_sum(losses.as<double>(), x.elements()) / denominator);
  });
}

void CpuBackend::point_loss_backward(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                                     const Tensor& dy, const Tensor& dx) {
  dispatch_real("point_loss_backward", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const double factor = static_cast<double>(dy.as<C>()[0]) / denominator;
    parallel(x.elements(), 4096, [&](Dim begin, Dim end) {
      for (Dim i = begin; i < end; ++i) {
        const double v = static_cast<double>(C(x.as<T>()[i])), t = static_cast<double>(C(target.as<T>()[i]));
        dx.as<T>()[i] = static_cast<T>(static_cast<C>(point_loss_slope(loss, v, t) * factor));
      }
    });
  });
}

void CpuBackend::argmax(const Tensor& x, const Tensor& out) {
  dispatch_real("argmax", x.dtype(), [&]<class T>() {
    const Dim columns = x.shape().columns();
    parallel(x.shape().rows(), row_block(columns), [&](Dim begin, Dim end) {
      for (Dim r = begin; r < end; ++r) {
        const T* row = x.as<T>() + r * columns;
        const auto less = [](const T& a, const T& b) { return Compute<T>(a) < Compute<T>(b); };
        out.as<std::int32_t>()[r] = static_cast<std::int32_t>(std::max_element(row, row + columns, less) - row);
      }
    });
  });
}

}  // namespace bertrand::cpu
