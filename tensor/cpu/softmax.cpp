// Softmax over the last axis.
#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/rows.h"

namespace bertrand::cpu {

void CpuBackend::softmax(const Tensor& x, const Tensor& y) {
  dispatch_real("softmax", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim columns = x.shape().columns();
    parallel(x.shape().rows(), row_block(columns), [&](Dim begin, Dim end) {
      for (Dim r = begin; r < end; ++r) {
        const T* from = x.as<T>() + r * columns;
        T* to = y.as<T>() + r * columns;
        const C most = row_max(from, columns);
        const Lanes<C> offset(most), inverse(C(1) / row_exp_sum(from, columns, most));
        for_lanes<C>(columns,
                     [&](Dim c, Dim n) { (exp(Lanes<C>::load(from + c, n) - offset) * inverse).store(to + c, n); });
      }
    });
  });
}

void CpuBackend::softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) {
  dispatch_real("softmax_backward", y.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim columns = y.shape().columns();
    parallel(y.shape().rows(), row_block(columns), [&](Dim begin, Dim end) {
      for (Dim r = begin; r < end; ++r) {
        const T *const row = y.as<T>() + r * columns, *const gradient = dy.as<T>() + r * columns;
        T* const to = dx.as<T>() + r * columns;
        const Lanes<C> dot(row_dot(row, gradient, columns));
        for_lanes<C>(columns, [&](Dim c, Dim n) {  // dx = y (dy − Σ y dy)
          (Lanes<C>::load(row + c, n) * (Lanes<C>::load(gradient + c, n) - dot)).store(to + c, n);
        });
      }
    });
  });
}

}  // namespace bertrand::cpu
