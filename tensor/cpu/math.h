// exp, log, erf and tanh of a whole vector. For f32 they are polynomials of our own choosing, so that the bits do not
// depend on a mathematics library; f64, which exists to check the others, asks the library lane by lane. All are
// inlined by force: a call would pass its vectors through memory.
#pragma once
#include <bit>
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
inline Lanes<double> unbounded_exp(const Lanes<double>& x) { return exp(x); }
inline Lanes<double> log(const Lanes<double>& x) {
  return each(x, [](double v) { return std::log(v); });
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
  Lanes<float> power;
  for (int i = 0; i < Lanes<float>::kPackets; ++i) {
    const auto bits = std::bit_cast<Bits<Packet>::Words>(shifted.packets[i]);
    power.packets[i] = std::bit_cast<Packet>((bits + 127) << 23);  // the constant's own bits fall off the top
  }
  return power;
}

constexpr float kRoundingShift = 12582912;  // 1.5 · 2²³: a float added to it loses its fraction

/// e^x = 2^n · e^r with |r| ≤ ln 2 / 2.
struct SplitExponential {
  Lanes<float> shifted;   ///< n + kRoundingShift
  Lanes<float> mantissa;  ///< e^r to 1.2e-7, by Moshier's polynomial (Cephes, expf)
};
[[gnu::always_inline]] inline SplitExponential split_exp(const Lanes<float>& x) {
  using L = Lanes<float>;
  const L shifted = fma(x, L(1.44269504088896341f), L(kRoundingShift));
  const L n = shifted - L(kRoundingShift);
  const L r = fma(n, L(2.12194440e-4f), fma(n, L(-0.693359375f), x));
  L p(1.9875691500e-4f);
  p = fma(p, r, L(1.3981999507e-3f));
  p = fma(p, r, L(8.3334519073e-3f));
  p = fma(p, r, L(4.1665795894e-2f));
  p = fma(p, r, L(1.6666665459e-1f));
  p = fma(p, r, L(5.0000001201e-1f));
  return {shifted, fma(p, r * r, r) + L(1.0f)};
}

/// e^x for softmax and GELU. Below −87.3 it stays at the smallest normal number, above 88.3 at the largest number that
/// it can form. NaN stays NaN.
[[gnu::always_inline]] inline Lanes<float> exp(const Lanes<float>& x) {
  const SplitExponential s = split_exp(min(max(x, Lanes<float>(-87.3365f)), Lanes<float>(88.3762f)));
  return s.mantissa * power_of_two(s.shifted);
}

/// e^x over the whole range of float: 0 and infinity at its ends, subnormal numbers before 0.
[[gnu::always_inline]] inline Lanes<float> unbounded_exp(const Lanes<float>& x) {
  using L = Lanes<float>;
  const SplitExponential s = split_exp(min(max(x, L(-104.0f)), L(89.0f)));
  const L n = s.shifted - L(kRoundingShift);
  const L half = fma(n, L(0.5f), L(kRoundingShift));  // 2^n in two factors: it alone may be no normal number
  const L rest = n - (half - L(kRoundingShift)) + L(kRoundingShift);
  return s.mantissa * power_of_two(half) * power_of_two(rest);
}

/// x = mantissa · 2^exponent with √½ ≤ mantissa < √2, for positive finite x.
struct Frexp {
  Lanes<float> mantissa, exponent;
};
[[gnu::always_inline]] inline Frexp split_binary(const Lanes<float>& x) {
  using Packet = Lanes<float>::Packet;
  using Words = Bits<Packet>::Words;
  typedef float Floats __attribute__((vector_size(sizeof(Packet))));
  const Lanes<float> normal = x * Lanes<float>(8388608.0f);  // what a subnormal x becomes, times 2²³
  Frexp y;
  for (int i = 0; i < Lanes<float>::kPackets; ++i) {
    const Words given = std::bit_cast<Words>(x.packets[i]);
    const Words is_subnormal = (given & 0x7fffffff) < 0x00800000;
    // Without the sign, which no result needs, no difference below overflows.
    const Words bits = (is_subnormal ? std::bit_cast<Words>(normal.packets[i]) : given) & 0x7fffffff;
    const Words exponent = (bits - 0x3f3504f3) >> 23;  // √½ as bits: below it the exponent is one less
    y.mantissa.packets[i] = std::bit_cast<Packet>(bits - (exponent << 23));
    y.exponent.packets[i] = std::bit_cast<Packet>(__builtin_convertvector(exponent + (is_subnormal & -23), Floats));
  }
  return y;
}

/// y for positive finite x; else what std::log(x) is: −∞ for 0, NaN for negative numbers, x for ∞ and NaN.
[[gnu::always_inline]] inline Lanes<float> with_ends_of_log(const Lanes<float>& x, const Lanes<float>& y) {
  using Packet = Lanes<float>::Packet;
  using Words = Bits<Packet>::Words;
  Lanes<float> z;
  for (int i = 0; i < Lanes<float>::kPackets; ++i) {
    const Words bits = std::bit_cast<Words>(x.packets[i]), magnitude = bits & 0x7fffffff;
    Words out = std::bit_cast<Words>(y.packets[i]);
    out = bits < 0 ? Words{} + 0x7fc00000 : out;                                    // NaN
    out = magnitude == 0 ? Words{} + static_cast<std::int32_t>(0xff800000u) : out;  // −∞
    out = magnitude > 0x7f800000 || bits == 0x7f800000 ? bits : out;
    z.packets[i] = std::bit_cast<Packet>(out);
  }
  return z;
}

/// ln x to 1 ulp: x = m · 2^e, then Moshier's polynomial for ln m (Cephes, logf); ln 2 in two parts.
[[gnu::always_inline]] inline Lanes<float> log(const Lanes<float>& x) {
  using L = Lanes<float>;
  const Frexp split = split_binary(x);
  const L r = split.mantissa - L(1.0f), r2 = r * r;
  L p(7.0376836292e-2f);
  p = fma(p, r, L(-1.1514610310e-1f));
  p = fma(p, r, L(1.1676998740e-1f));
  p = fma(p, r, L(-1.2420140846e-1f));
  p = fma(p, r, L(1.4249322787e-1f));
  p = fma(p, r, L(-1.6668057665e-1f));
  p = fma(p, r, L(2.0000714765e-1f));
  p = fma(p, r, L(-2.4999993993e-1f));
  p = fma(p, r, L(3.3333331174e-1f));
  const L low = fma(split.exponent, L(-2.12194440e-4f), r * r2 * p);
  const L y = fma(split.exponent, L(0.693359375f), r + fma(r2, L(-0.5f), low));
  return with_ends_of_log(x, y);
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

/// erf to 4.5e-7 absolute: the rational minimax approximation on [−4, 4] that XLA and Eigen publish.
[[gnu::always_inline]] inline Lanes<float> erf(const Lanes<float>& x) {
  static constexpr float kP[] = {-2.72614225801306e-10f, 2.77068142495902e-08f,  -2.10102402082508e-06f,
                                 -5.69250639462346e-05f, -7.34990630326855e-04f, -2.95459980854025e-03f,
                                 -1.60960333262415e-02f};
  static constexpr float kQ[] = {-1.45660718464996e-05f, -2.13374055278905e-04f, -1.68282697438203e-03f,
                                 -7.37332916720468e-03f, -1.42647390514189e-02f};
  return odd_rational(min(max(x, Lanes<float>(-4.0f)), Lanes<float>(4.0f)), kP, kQ);
}

/// tanh to 3e-7: the rational approximation that XLA and Eigen publish. It is ±1 beyond ±7.9988, the cut-off that fits
/// fused multiply-adds: in the slope of GELU an error of tanh near 1 is multiplied by x³.
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
[[gnu::always_inline]] inline Lanes<T> gelu(const Lanes<T>& x) {
  const Lanes<T> half_x = x * Lanes<T>(T(0.5));
  return fma(half_x, erf(x * Lanes<T>(T(0.70710678118654752440))), half_x);
}
/// d/dx = Φ(x) + x φ(x). φ stays at 2^-126 at least: it is wrong beyond 1e37.
template <class T>
[[gnu::always_inline]] inline Lanes<T> gelu_slope(const Lanes<T>& x) {
  using L = Lanes<T>;
  const L cumulative = fma(erf(x * L(T(0.70710678118654752440))), L(T(0.5)), L(T(0.5)));
  const L density = exp(x * x * L(T(-0.5))) * L(T(0.39894228040143267794));  // 1/√(2π)
  return fma(x, density, cumulative);
}
/// 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³))): the approximation that google-research/bert takes.
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
  const L x2 = min(x * x, L(T(1e30)));  // else 0 · ∞ far out
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
    case Unary::gelu: return gelu(x);
    case Unary::gelu_tanh: return gelu_tanh(x);
    case Unary::exp: return unbounded_exp(x);
    case Unary::log: return log(x);
    case Unary::sqrt: return sqrt(x);
    case Unary::neg: return -x;
    case Unary::identity: return x;
  }
  __builtin_unreachable();
}

/// Its derivative.
template <class T>
[[gnu::always_inline]] inline Lanes<T> slope(Unary op, const Lanes<T>& x) {
  switch (op) {
    case Unary::relu:
      return Lanes<T>::map(
          [](auto v) {
            return Eigen::internal::pselect(Eigen::internal::pcmp_lt(Eigen::internal::pzero(v), v),
                                            Eigen::internal::pset1<decltype(v)>(T(1)), Eigen::internal::pzero(v));
          },
          x);
    case Unary::tanh: {
      const Lanes<T> y = tanh(x);
      return Lanes<T>(T(1)) - y * y;
    }
    case Unary::gelu: return gelu_slope(x);
    case Unary::gelu_tanh: return gelu_tanh_slope(x);
    case Unary::exp: return unbounded_exp(x);
    case Unary::log: return Lanes<T>(T(1)) / x;
    case Unary::sqrt: return Lanes<T>(T(0.5)) / sqrt(x);
    case Unary::neg: return Lanes<T>(T(-1));
    case Unary::identity: return Lanes<T>(T(1));
  }
  __builtin_unreachable();
}

}  // namespace bertrand::cpu
