// What kernels use beyond CUDA's own words, on a GPU. Its twin for the emulation is emulation/shared.h and no_gpu.h.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "tensor/dtype.h"

namespace bertrand::cuda {

/// Used as `__shared__ SharedArray<float, 32> partial;`.
template <class T, int kCount>
struct SharedArray {
  T values[kCount];
  __device__ T& operator[](std::int64_t i) { return values[i]; }
};

/// `count` elements of the dynamic shared memory, from a byte on.
template <class T>
class SharedSpan {
 public:
  __device__ SharedSpan(std::int64_t first_byte, std::int64_t /*count*/) {
    extern __shared__ __align__(16) unsigned char dynamic_shared[];
    values_ = reinterpret_cast<T*>(dynamic_shared + first_byte);
  }
  __device__ T& operator[](std::int64_t i) const { return values_[i]; }

 private:
  T* values_;
};

/// Starts to copy 16 bytes to the four numbers from span[at] on, or zeros if they are not `there`. Addresses are
/// multiples of 16. The thread must wait for them, and the others must meet it after that.
__device__ inline void start_copy(const SharedSpan<std::uint32_t>& span, std::int64_t at, const void* from,
                                  bool there) {
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(&span[at]))),
      "l"(from), "r"(there ? 16 : 0)
      : "memory");
}
/// Ends a group of copies, which may be empty.
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for all groups but the last kLater.
template <int kLater>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLater) : "memory");
}

/// The four numbers from span[at] on, a multiple of 4, as 16 bytes.
template <class To>
__device__ To four_of(const SharedSpan<std::uint32_t>& span, std::int64_t at) {
  return *reinterpret_cast<const To*>(&span[at]);
}

/// Four blocks of 8 × 8 elements of 16 bits, whose 8 rows begin at the `row` that lanes 0 … 7, 8 … 15, … give: lane
/// 4g + t gets elements 2t, 2t + 1 of row g of each, or of its transpose. A whole warp calls it.
template <bool kTransposed>
__device__ void load_blocks(std::uint32_t (&out)[4], const SharedSpan<std::uint32_t>& span, std::int64_t row) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(&span[row]));
  if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(address)
                 : "memory");
}

/// 2^x to some 22 bits, in one instruction, and 0 below 2^-126: enough for a result that is rounded to a half type.
__device__ inline float quick_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 1 / x to some 23 bits, in one instruction.
__device__ inline float quick_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/// 1 / √x to within two units of the last place; the emulation rounds it correctly.
__device__ inline float inverse_root(float x) { return rsqrtf(x); }
__device__ inline double inverse_root(double x) { return rsqrt(x); }

// One instruction each; tensor/dtype.h has the same roundings in whole numbers.
__device__ inline float to_float(BFloat16 x) { return __uint_as_float(static_cast<unsigned>(x.bits) << 16); }
__device__ inline float to_float(Float16 x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ inline BFloat16 to_bfloat16(float x) {
  return std::bit_cast<BFloat16>(__bfloat16_as_ushort(__float2bfloat16_rn(x)));
}
__device__ inline Float16 to_float16(float x) { return std::bit_cast<Float16>(__half_as_ushort(__float2half_rn(x))); }
/// Both rounded to T by one instruction, the first in the low half.
template <class T>
__device__ std::uint32_t make_pair(float first, float second) {
  static_assert(std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>);
  std::uint32_t pair;
  if constexpr (std::is_same_v<T, BFloat16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

/// tensor/cuda/mma.h says what the lanes hold.
template <class T>
__device__ void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  if constexpr (std::is_same_v<T, BFloat16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace bertrand::cuda
