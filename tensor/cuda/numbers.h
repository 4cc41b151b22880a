// What a thread holds: kernels load T, compute in float (double for f64) and store T, eight elements at a time.
#pragma once
#include <bit>
#include <type_traits>

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

/// Two neighbouring elements of a half type, the first in the low half.
using Pair = std::uint32_t;
template <class T>
__device__ T of_pair(Pair pair, int half) {
  return std::bit_cast<T>(static_cast<std::uint16_t>(pair >> (16 * half)));
}

/// A pack as it lies in memory; in half types in pairs, half as many registers.
template <class T>
struct PackedPack {
  static constexpr int kOfWord = sizeof(T) == 2 ? 2 : 1;
  using Word = std::conditional_t<kOfWord == 2, Pair, T>;
  using Piece = Wide<Word>;
  static constexpr int kWords = kPack / kOfWord, kWide = 16 / sizeof(Word), kOfPiece = 16 / sizeof(T);
  Piece pieces[kPack / kOfPiece];

  PackedPack() = default;
  __device__ explicit PackedPack(const Pack<T>& pack) {
    for (int w = 0; w < kWords; ++w)
      if constexpr (kOfWord == 2) word(w) = make_pair<T>(pack[2 * w], pack[2 * w + 1]);
      else word(w) = pack[w];
  }
  __device__ Pack<T> unpack() const {
    Pack<T> pack;
    for (int i = 0; i < kPack; ++i) pack[i] = convert<Compute<T>>((*this)[i]);
    return pack;
  }
  __device__ Word& word(int w) { return pieces[w / kWide].values[w % kWide]; }
  __device__ T operator[](int i) const {
    const Word w = pieces[i / kOfWord / kWide].values[i / kOfWord % kWide];
    if constexpr (kOfWord == 2) return of_pair<T>(w, i % 2);
    else return w;
  }
};

/// The next kPack elements; in place of those after the end `missing`, rounded to T. kAligned: the caller knows that
/// every pack that begins before the end is whole and lies on a multiple of 16 bytes, which spares the kernel the other
/// way.
template <bool kAligned = false, class T>
__device__ PackedPack<T> load_packed(const T* x, Dim left, Compute<T> missing = 0) {
  PackedPack<T> pack;
  if (kAligned ? left > 0 : moves_wide(x, left)) {
    constexpr int kOfPiece = PackedPack<T>::kOfPiece;
    for (int i = 0; i < kPack; i += kOfPiece)
      pack.pieces[i / kOfPiece] = *reinterpret_cast<const typename PackedPack<T>::Piece*>(x + i);
    return pack;
  }
  Pack<T> one_by_one;
  for (int i = 0; i < kPack; ++i) one_by_one[i] = !kAligned && i < left ? load(x + i) : missing;
  return PackedPack<T>(one_by_one);
}
template <bool kAligned = false, class T>
__device__ Pack<T> load_pack(const T* x, Dim left, Compute<T> missing = 0) {
  return load_packed<kAligned>(x, left, missing).unpack();
}

template <bool kAligned = false, class T>
__device__ void store_packed(T* to, Dim left, const PackedPack<T>& pack) {
  if (kAligned ? left > 0 : moves_wide(to, left)) {
    constexpr int kOfPiece = PackedPack<T>::kOfPiece;
    for (int i = 0; i < kPack; i += kOfPiece)
      *reinterpret_cast<typename PackedPack<T>::Piece*>(to + i) = pack.pieces[i / kOfPiece];
  } else if (!kAligned) {
    for (int i = 0; i < kPack && i < left; ++i) to[i] = pack[i];
  }
}
template <bool kAligned = false, class T>
__device__ void store_pack(T* to, Dim left, const Pack<T>& pack) {
  store_packed<kAligned>(to, left, PackedPack<T>(pack));
}

/// Whether rows of these matrices may be moved with kAligned. A matrix may be absent.
template <class... T>
bool rows_are_aligned(Dim columns, const T*... matrices) {
  return columns % kPack == 0 && ((reinterpret_cast<std::uintptr_t>(matrices) % 16 == 0) && ...);
}
/// body.operator()<value>()
template <class Body>
void dispatch_bool(bool value, Body&& body) {
  if (value) body.template operator()<true>();
  else body.template operator()<false>();
}

}  // namespace bertrand::cuda
