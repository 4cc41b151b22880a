// What tensor/cuda/card.h gives by a card's instructions, without one.
#pragma once
#include "tensor/dtype.h"

namespace bertrand::cuda {

inline float to_float(BFloat16 x) { return static_cast<float>(x); }
inline float to_float(Float16 x) { return static_cast<float>(x); }
inline BFloat16 to_bfloat16(float x) { return BFloat16(x); }
inline Float16 to_float16(float x) { return Float16(x); }

}  // namespace bertrand::cuda
