// How numbers of two bytes come into a register of floats and leave it again, rounded to the nearest, ties to even: the
// same bits as the conversions of BFloat16 and Float16 in tensor/dtype.h, but for which NaN a NaN becomes. Widening is
// exact.
#pragma once
#include <Eigen/Core>
#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__F16C__)
#include <immintrin.h>
#endif

#include "tensor/dtype.h"

namespace bertrand::cpu {

/// A register of floats as its bits, and half a register of the two-byte bits they are kept in.
template <class Packet>
struct Bits {
  typedef std::int32_t Words __attribute__((vector_size(sizeof(Packet))));
  typedef std::uint32_t Unsigned __attribute__((vector_size(sizeof(Packet))));
  typedef std::uint16_t Halves __attribute__((vector_size(sizeof(Packet) / 2)));
};

/// As many elements as a register takes, in the type that is computed in.
template <class Packet, class T>
[[gnu::always_inline]] inline Packet load_packet(const T* from) {
  return Eigen::internal::ploadu<Packet>(from);
}
template <class Packet, class T>
[[gnu::always_inline]] inline void store_packet(const Packet& x, T* to) {
  Eigen::internal::pstoreu(to, x);
}

template <class Packet>
[[gnu::always_inline]] inline Packet load_packet(const BFloat16* from) {
  typename Bits<Packet>::Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return std::bit_cast<Packet>(__builtin_convertvector(halves, typename Bits<Packet>::Unsigned) << 16);
}
template <class Packet>
[[gnu::always_inline]] inline void store_packet(const Packet& x, BFloat16* to) {
  const auto bits = std::bit_cast<typename Bits<Packet>::Unsigned>(x);
  const auto is_nan = std::bit_cast<typename Bits<Packet>::Words>(bits & 0x7fffffffu) > 0x7f800000;
  const auto rounded = is_nan ? bits >> 16 | 0x40u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  const auto halves = __builtin_convertvector(rounded, typename Bits<Packet>::Halves);
  std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
}

template <class Packet>
[[gnu::always_inline]] inline Packet load_packet(const Float16* from) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(__F16C__)
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
  float wide[sizeof(Packet) / sizeof(float)];
  for (float& v : wide) v = static_cast<float>(*from++);
  return load_packet<Packet>(wide);
#endif
}
template <class Packet>
[[gnu::always_inline]] inline void store_packet(const Packet& x, Float16* to) {
#if defined(__AVX512F__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
  float wide[sizeof(Packet) / sizeof(float)];
  std::memcpy(wide, &x, sizeof wide);
  for (const float v : wide) *to++ = Float16(v);
#endif
}

}  // namespace bertrand::cpu
