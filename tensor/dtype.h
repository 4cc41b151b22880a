// The element types a Tensor can hold.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "io/error.h"

namespace bertrand {

enum class DType : std::uint8_t { f32, f64, f16, bf16, i32, i64, u8 };

/// bfloat16: the upper half of a float. Rounds to nearest, ties to even; NaN stays NaN.
struct BFloat16 {
  std::uint16_t bits = 0;

  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(is_nan ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  constexpr explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

/// IEEE 754 binary16. Rounds to nearest, ties to even; too large becomes infinity.
struct Float16 {
  std::uint16_t bits = 0;

  constexpr Float16() = default;
  constexpr explicit Float16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
    const std::uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      bits = static_cast<std::uint16_t>(sign | 0x7e00u);
    } else if (magnitude >= 0x477ff000u) {  // 65520 and above round to infinity
      bits = static_cast<std::uint16_t>(sign | 0x7c00u);
    } else if (magnitude < 0x38800000u) {                           // below 2^-14: subnormal, a multiple of 2^-24
      const float scaled = std::bit_cast<float>(magnitude) + 0.5f;  // 0.5 has 2^-24 as its last place: rounds for us
      bits = static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(scaled) - 0x3f000000u));
    } else {
      bits = static_cast<std::uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
    }
  }
  constexpr explicit operator float() const {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13));
    if (magnitude >= 0x400u) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
    const float subnormal = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
  }
};

inline std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64: return 8;
    case DType::f32:
    case DType::i32: return 4;
    case DType::f16:
    case DType::bf16: return 2;
    case DType::u8: return 1;
  }
  return 0;
}

inline std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::f16: return "f16";
    case DType::bf16: return "bf16";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::u8: return "u8";
  }
  return "?";
}

inline bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::f16 || dtype == DType::bf16;
}

/// What kernels compute in: f32 for the half types, which are for memory only; f64 for f64. Sums to one number,
/// statistics and losses are also kept in it.
inline DType compute_type(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16 ? DType::f32 : dtype; }
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

/// The DType of a C++ element type.
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  else if constexpr (std::is_same_v<T, double>) return DType::f64;
  else if constexpr (std::is_same_v<T, Float16>) return DType::f16;
  else if constexpr (std::is_same_v<T, BFloat16>) return DType::bf16;
  else if constexpr (std::is_same_v<T, std::int32_t>) return DType::i32;
  else if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  else {
    static_assert(std::is_same_v<T, std::uint8_t>, "not an element type");
    return DType::u8;
  }
}

/// Calls body.operator()<T>() with the C++ type of any dtype.
template <class Body>
decltype(auto) dispatch(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32: return body.template operator()<float>();
    case DType::f64: return body.template operator()<double>();
    case DType::f16: return body.template operator()<Float16>();
    case DType::bf16: return body.template operator()<BFloat16>();
    case DType::i32: return body.template operator()<std::int32_t>();
    case DType::i64: return body.template operator()<std::int64_t>();
    case DType::u8: return body.template operator()<std::uint8_t>();
  }
  fail(Failure::bug, "dispatch: {} is no dtype", static_cast<int>(dtype));
}

/// Calls body.operator()<T>() for the floating types.
template <class Body>
void dispatch_real(const char* op, DType dtype, Body&& body) {
  switch (dtype) {
    case DType::f32: return body.template operator()<float>();
    case DType::f64: return body.template operator()<double>();
    case DType::f16: return body.template operator()<Float16>();
    case DType::bf16: return body.template operator()<BFloat16>();
    default: fail(Failure::bug, "{}: expected a floating type, got {}", op, name_of(dtype));
  }
}

/// The same for an operand that is of type T or, if T is f32, of a half type.
template <class T, class Body>
void dispatch_operand(DType dtype, Body&& body) {
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::f16) return body.template operator()<Float16>();
    if (dtype == DType::bf16) return body.template operator()<BFloat16>();
  }
  check(dtype == dtype_of<T>(), "expected operands of one type, or of f32 and a half type, got {} and {}",
        name_of(dtype_of<T>()), name_of(dtype));
  body.template operator()<T>();
}

}  // namespace bertrand
