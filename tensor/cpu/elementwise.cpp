// Kernels that look at one element at a time.
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include <cstring>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/dropout.h"
#include "tensor/cpu/math.h"

namespace bertrand::cpu {
namespace {

constexpr Dim kBlock = 16384;  // elements a piece of work

// Pointers are taken before a loop: a store may alias a Tensor, so that as() would be asked for each vector.

template <class To, class From>
To convert(From x) {
  constexpr bool kFromHalf = std::is_same_v<From, Float16> || std::is_same_v<From, BFloat16>;
  constexpr bool kToHalf = std::is_same_v<To, Float16> || std::is_same_v<To, BFloat16>;
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (kFromHalf) return convert<To>(static_cast<float>(x));
  else if constexpr (kToHalf) return To(static_cast<float>(x));
  else return static_cast<To>(x);
}

template <class T>
[[gnu::always_inline]] inline Lanes<T> combine(Binary op, const Lanes<T>& a, const Lanes<T>& b) {
  switch (op) {
    case Binary::add: return a + b;
    case Binary::sub: return a - b;
    case Binary::mul: return a * b;
    case Binary::div: return a / b;
  }
  __builtin_unreachable();
}

/// memcpy by stores that leave the caches alone, if `to` begins on a multiple of 16 bytes.
void copy_streaming(const std::byte* from, std::byte* to, std::size_t bytes) {
#if defined(__x86_64__)
  if (reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    for (; bytes >= 16; from += 16, to += 16, bytes -= 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    _mm_sfence();  // else a later store, which says that all is there, could be seen before these
  }
#endif
  std::memcpy(to, from, bytes);
}

}  // namespace

void CpuBackend::fill(const Tensor& out, double value) {
  dispatch(out.dtype(), [&]<class T>() {
    const T v = convert<T, double>(value);
    parallel(out.elements(), 4 * kBlock,
             [&](Dim begin, Dim end) { std::fill(out.as<T>() + begin, out.as<T>() + end, v); });
  });
}

void CpuBackend::cast(const Tensor& x, const Tensor& out) {
  dispatch(x.dtype(), [&]<class From>() {
    dispatch(out.dtype(), [&]<class To>() {
      const From* const from = x.as<From>();
      To* const to = out.as<To>();
      parallel(x.elements(), kBlock, [&](Dim begin, Dim end) {
        if constexpr (std::is_same_v<From, To>)
          std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin) * sizeof(To));
        else if constexpr (std::is_same_v<Compute<From>, float> && std::is_same_v<Compute<To>, float>)
          for_lanes<float>(end - begin,
                           [&](Dim i, Dim n) { Lanes<float>::load(from + begin + i, n).store(to + begin + i, n); });
        else std::transform(from + begin, from + end, to + begin, convert<To, From>);
      });
    });
  });
}

void CpuBackend::copy_past_caches(const Tensor& x, const Tensor& out) {
  const std::size_t size = size_of(x.dtype());
  parallel(x.elements(), kBlock, [&](Dim begin, Dim end) {
    const std::size_t first = static_cast<std::size_t>(begin) * size;
    copy_streaming(x.as<std::byte>() + first, out.as<std::byte>() + first,
                   static_cast<std::size_t>(end) * size - first);
  });
}

void CpuBackend::unary(Unary op, const Tensor& x, const Tensor& out) {
  dispatch_real("unary", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const T* const from = x.as<T>();
    T* const to = out.as<T>();
    parallel(x.elements(), kBlock, [&](Dim begin, Dim end) {
      for_lanes<C>(end - begin, [&](Dim i, Dim n) {
        i += begin;
        apply(op, Lanes<C>::load(from + i, n)).store(to + i, n);
      });
    });
  });
}

void CpuBackend::unary_backward(Unary op, const Tensor& x, const Tensor& dy, const Tensor& dx,
                                const Tensor& sum_of_rows) {
  dispatch_real("unary_backward", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const T *const from = x.as<T>(), *const gradient = dy.as<T>();
    T* const to = dx.as<T>();
    parallel(x.elements(), kBlock, [&](Dim begin, Dim end) {
      for_lanes<C>(end - begin, [&](Dim i, Dim n) {
        i += begin;
        (slope(op, Lanes<C>::load(from + i, n)) * Lanes<C>::load(gradient + i, n)).store(to + i, n);
      });
    });
  });
  if (sum_of_rows) sum_rows(dx, sum_of_rows);
}

void CpuBackend::binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& out) {
  const auto typed = [&]<class T, class B>() {
    using C = Compute<T>;
    const Dim columns = b.elements();
    const T* const left = a.as<T>();
    const B* const right = b.as<B>();
    T* const to = out.as<T>();
    const auto row = [&](Dim first, Dim begin, Dim end) {  // columns [begin, end) of the row that starts at `first`
      for_lanes<C>(end - begin, [&](Dim c, Dim n) {
        c += begin;
        combine(op, Lanes<C>::load(left + first + c, n), Lanes<C>::load(right + c, n)).store(to + first + c, n);
      });
    };
    if (columns == a.elements()) parallel(columns, kBlock, [&](Dim begin, Dim end) { row(0, begin, end); });
    else
      parallel(a.elements() / columns, row_block(columns), [&](Dim begin, Dim end) {
        for (Dim r = begin; r < end; ++r) row(r * columns, 0, columns);
      });
  };
  dispatch_real("binary", a.dtype(), [&]<class T>() {
    dispatch_operand<T>(b.dtype(), [&]<class B>() { typed.template operator()<T, B>(); });
  });
}

void CpuBackend::scale(const Tensor& x, double factor, const Tensor& out) {
  dispatch_real("scale", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Lanes<C> f(static_cast<C>(factor));
    const T* const from = x.as<T>();
    T* const to = out.as<T>();
    parallel(x.elements(), kBlock, [&](Dim begin, Dim end) {
      for_lanes<C>(end - begin, [&](Dim i, Dim n) {
        i += begin;
        (Lanes<C>::load(from + i, n) * f).store(to + i, n);
      });
    });
  });
}

void CpuBackend::expand(const Tensor& scalar, double factor, const Tensor& out) {
  dispatch_real("expand", scalar.dtype(),
                [&]<class T>() { fill(out, static_cast<double>(Compute<T>(scalar.as<T>()[0])) * factor); });
}

void CpuBackend::copy_block(const Tensor& x, Dim x_stride, const Tensor& out, Dim out_stride, Dim rows, Dim columns) {
  const std::size_t size = size_of(x.dtype());
  parallel(rows, row_block(columns), [&](Dim begin, Dim end) {
    for (Dim r = begin; r < end; ++r)
      std::memcpy(out.data() + static_cast<std::size_t>(r * out_stride) * size,
                  x.data() + static_cast<std::size_t>(r * x_stride) * size, static_cast<std::size_t>(columns) * size);
  });
}

void CpuBackend::dropout(const Tensor& x, const Dropout& dropout, const Tensor& out) {
  dispatch_real("dropout", x.dtype(), [&]<class T>() {
    using C = Compute<T>;
    const Dim rows = x.shape().rows(), columns = x.shape().columns();
    const auto* keys = dropout.row_keys.as<std::int64_t>();
    const T* const from = x.as<T>();
    T* const to = out.as<T>();
    parallel(rows, row_block(columns), [&](Dim begin, Dim end) {
      for (Dim r = begin; r < end; ++r)
        for_dropout_row<C>(dropout, keys[r], 0, columns, [&](Dim c, Dim n, const Lanes<C>& multiplier) {
          c += r * columns;
          (Lanes<C>::load(from + c, n) * multiplier).store(to + c, n);
        });
    });
  });
}

}  // namespace bertrand::cpu
