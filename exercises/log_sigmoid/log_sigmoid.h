#pragma once
#include "autograd/ops.h"

/// log σ(x) of each element; x f64 on the CPU.
bertrand::Variable log_sigmoid(const bertrand::Variable& x);
