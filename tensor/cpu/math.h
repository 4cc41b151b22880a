// exp, erf and tanh of a whole vector. For f32 they are polynomials of our own choosing, so that the bits do not depend
// on a mathematics library; f64, which exists to check the others, asks the library lane by lane. All are inlined by
// force: a call would pass its vectors through memory.
#pragma once
#include <cmath>
#include <cstdint>

#include "tensor/backend.h"
#include "tensor/cpu/lanes.h"

namespace bertrand::cpu {

template <class F>
Lanes<double> each(const Lanes<double>& x, F&& f) {
  alignas(64) double a[Lanes<double>::kCount];
  x.store(a);
  for (double& v : a) v = f(v);
  return Lanes<double>::load(a);
}
inline Lanes<double> exp(const Lanes<double>& x) {
  return each(x, [](double v) { return std::exp(v); });
}
inline Lanes<double> erf(const Lanes<double>& x) {
  return each(x, [](double v) { return std::erf(v); });
}
inline Lanes<double> tanh(const Lanes<double>& x) {
  return each(x, [](double v) { return std::tanh(v); });
}

/// 2^n for whole numbers n in [−126, 127], given n + 1.5·2²³: adding that constant leaves n in the low bits.
[[gnu::always_inline]] inline Lanes<float> power_of_two(const Lanes<float>& shifted) {
  using Packet = Lanes<float>::Packet;
  typedef std::int32_t Bits __attribute__((vector_size(sizeof(Packet))));
  return Lanes<float>::map(
      [](Packet p) {
        Bits bits;
        std::memcpy(&bits, &p, sizeof bits);
        bits = (bits + 127) << 23;  // the exponent field; the constant's own bits fall off the top
        std::memcpy(&p, &bits, sizeof bits);
        return p;
      },
      shifted);
}

/// e^x to 1.2e-7 relative: x = n ln 2 + r with |r| ≤ ln 2 / 2, then Moshier's polynomial for e^r (Cephes, expf).
/// Below −87.3 it stays at the smallest normal number, above 88.3 at the largest it can form; NaN stays NaN.
[[gnu::always_inline]] inline Lanes<float> exp(const Lanes<float>& argument) {
  using L = Lanes<float>;
  const L x = min(max(argument, L(-87.3365f)), L(88.3762f));
  const L shift(12582912.0f);  // 1.5 · 2²³
  const L shifted = fma(x, L(1.44269504088896341f), shift);
  const L n = shifted - shift;
  const L r = fma(n, L(2.12194440e-4f), fma(n, L(-0.693359375f), x));
  L p(1.9875691500e-4f);
  p = fma(p, r, L(1.3981999507e-3f));
  p = fma(p, r, L(8.3334519073e-3f));
  p = fma(p, r, L(4.1665795894e-2f));
  p = fma(p, r, L(1.6666665459e-1f));
  p = fma(p, r, L(5.0000001201e-1f));
  return (fma(p, r * r, r) + L(1.0f)) * power_of_two(shifted);
}

/// x P(x²) / Q(x²): how both odd functions below are approximated.
template <std::size_t P, std::size_t Q>
[[gnu::always_inline]] inline Lanes<float> odd_rational(const Lanes<float>& x, const float (&numerator)[P],
                                                        const float (&denominator)[Q]) {
  using L = Lanes<float>;
  const L x2 = x * x;
  L p(numerator[0]), q(denominator[0]);
  for (std::size_t i = 1; i < P; ++i) p = fma(p, x2, L(numerator[i]));
  for (std::size_t i = 1; i < Q; ++i) q = fma(q, x2, L(denominator[i]));
  return x * p / q;
}

/// erf to 3.3e-7 absolute: the rational minimax approximation on [−4, 4] that XLA and Eigen publish.
[[gnu::always_inline]] inline Lanes<float> erf(const Lanes<float>& x) {
  static constexpr float kP[] = {-2.72614225801306e-10f, 2.77068142495902e-08f,  -2.10102402082508e-06f,
                                 -5.69250639462346e-05f, -7.34990630326855e-04f, -2.95459980854025e-03f,
                                 -1.60960333262415e-02f};
  static constexpr float kQ[] = {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f,
                                 -7.37332916720468e-03f, -1.42647390514189e-02f};
  return odd_rational(min(max(x, Lanes<float>(-4.0f)), Lanes<float>(4.0f)), kP, kQ);
}

/// tanh to 3e-7: the rational approximation that XLA and Eigen publish. It is ±1 from where it is cut off, which with
/// fused multiply-adds is at ±7.9988: GELU's slope multiplies what is missing to 1 by x³.
[[gnu::always_inline]] inline Lanes<float> tanh(const Lanes<float>& x) {
  static constexpr float kP[] = {-2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f,
                                 5.12229709037114e-08f,  1.48572235717979e-05f, 6.37261928875436e-04f,
                                 4.89352455891786e-03f};
  static constexpr float kQ[] = {1.19825839466702e-06f, 1.18534705686654e-04f, 2.26843463243900e-03f,
                                 4.89352518554385e-03f};
  return odd_rational(min(max(x, Lanes<float>(-7.99881172180175781f)), Lanes<float>(7.99881172180175781f)), kP, kQ);
}

/// Φ(x) x: the Gaussian error linear unit (Hendrycks and Gimpel 2016).
template <class T>
[[gnu::always_inline]] inline Lanes<T> gelu_erf(const Lanes<T>& x) {
  const Lanes<T> half_x = x * Lanes<T>(T(0.5));
  return fma(half_x, erf(x * Lanes<T>(T(0.70710678118654752440))), half_x);
}
/// d/dx = Φ(x) + x φ(x)
template <class T>
[[gnu::always_inline]] inline Lanes<T> gelu_erf_slope(const Lanes<T>& x) {
  using L = Lanes<T>;
  const L cumulative = fma(erf(x * L(T(0.70710678118654752440))), L(T(0.5)), L(T(0.5)));
  const L density = exp(x * x * L(T(-0.5))) * L(T(0.39894228040143267794));  // 1/√(2π)
  return fma(x, density, cumulative);
}
/// 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))): Google's form.
template <class T>
[[gnu::always_inline]] inline Lanes<T> gelu_tanh(const Lanes<T>& x) {
  using L = Lanes<T>;
  const L inner = x * fma(x * x, L(T(0.044715 * 0.79788456080286535588)), L(T(0.79788456080286535588)));
  const L half_x = x * L(T(0.5));
  return fma(half_x, tanh(inner), half_x);
}
/// With t = tanh(u): d/dx = 0.5 (1 + t) + 0.5 x (1 − t²) u′
template <class T>
[[gnu::always_inline]] inline Lanes<T> gelu_tanh_slope(const Lanes<T>& x) {
  using L = Lanes<T>;
  const L x2 = x * x;
  const L t = tanh(x * fma(x2, L(T(0.044715 * 0.79788456080286535588)), L(T(0.79788456080286535588))));
  const L du = fma(x2, L(T(3 * 0.044715 * 0.79788456080286535588)), L(T(0.79788456080286535588)));
  const L half = L(T(0.5));
  return fma(half * x * (L(T(1)) - t * t), du, fma(half, t, half));
}

/// An elementwise function, as a layer's activation is.
template <class T>
[[gnu::always_inline]] inline Lanes<T> apply(Unary op, const Lanes<T>& x) {
  switch (op) {
    case Unary::relu: return max(x, Lanes<T>(T(0)));
    case Unary::tanh: return tanh(x);
    case Unary::gelu_erf: return gelu_erf(x);
    case Unary::gelu_tanh: return gelu_tanh(x);
    case Unary::identity: break;
  }
  return x;
}

}  // namespace bertrand::cpu
