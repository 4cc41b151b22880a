// What a thread holds: kernels load T, compute in float (double for f64) and store T, eight elements at a time.
#pragma once
#include "tensor/cuda/platform.h"
#include "tensor/shape.h"

namespace bertrand::cuda {

/// An element as a number to compute with, and back; also between any two dtypes.
template <class To, class From>
__device__ To convert(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (std::is_same_v<From, BFloat16> || std::is_same_v<From, Float16>) return convert<To>(to_float(x));
  else if constexpr (std::is_same_v<To, BFloat16>) return to_bfloat16(static_cast<float>(x));
  else if constexpr (std::is_same_v<To, Float16>) return to_float16(static_cast<float>(x));
  else return static_cast<To>(x);
}
template <class T>
__device__ Compute<T> load(const T* x) {
  return convert<Compute<T>>(*x);
}
template <class T>
__device__ void store(T* to, Compute<T> value) {
  *to = convert<T>(value);
}

inline constexpr int kPack = 8;           // neighbouring elements that one thread holds
inline constexpr int kWarpColumns = 256;  // columns that the packs of a warp cover

/// Neighbouring elements of T, in the type that is computed in.
template <class T>
struct Pack {
  Compute<T> values[kPack];
  __device__ Compute<T>& operator[](int i) { return values[i]; }
  __device__ const Compute<T>& operator[](int i) const { return values[i]; }
};

/// As many elements as the widest load or store takes.
template <class T>
struct alignas(16) Wide {
  T values[16 / sizeof(T)];
};

/// Whether a pack may be moved in wide pieces: `left` elements are there and the first lies on a multiple of 16 bytes.
template <class T>
__device__ bool moves_wide(const T* x, Dim left) {
  return left >= kPack && reinterpret_cast<std::uintptr_t>(x) % 16 == 0;
}

/// The next kPack elements, `missing` in place of those after the end.
template <class T>
__device__ Pack<T> load_pack(const T* x, Dim left, Compute<T> missing = 0) {
  Pack<T> pack;
  constexpr int kWide = 16 / sizeof(T);
  if (moves_wide(x, left)) {
    for (int i = 0; i < kPack; i += kWide) {
      const Wide<T> wide = *reinterpret_cast<const Wide<T>*>(x + i);
      for (int j = 0; j < kWide; ++j) pack[i + j] = convert<Compute<T>>(wide.values[j]);
    }
  } else {
    for (int i = 0; i < kPack; ++i) pack[i] = i < left ? load(x + i) : missing;
  }
  return pack;
}

template <class T>
__device__ void store_pack(T* to, Dim left, const Pack<T>& pack) {
  constexpr int kWide = 16 / sizeof(T);
  if (moves_wide(to, left)) {
    for (int i = 0; i < kPack; i += kWide) {
      Wide<T> wide;
      for (int j = 0; j < kWide; ++j) wide.values[j] = convert<T>(pack[i + j]);
      *reinterpret_cast<Wide<T>*>(to + i) = wide;
    }
  } else {
    for (int i = 0; i < kPack && i < left; ++i) store(to + i, pack[i]);
  }
}

}  // namespace bertrand::cuda
