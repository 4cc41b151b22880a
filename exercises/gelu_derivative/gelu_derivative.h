#pragma once
#include "autograd/ops.h"

/// GELU with tanh, of each element; x f64 on the CPU.
bertrand::Variable my_gelu(const bertrand::Variable& x);
