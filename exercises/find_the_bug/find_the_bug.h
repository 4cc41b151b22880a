#pragma once
#include "autograd/ops.h"

/// x / √(mean of x² + ε) · γ, row by row; x [rows, n], gamma [n], f64 on the CPU.
bertrand::Variable rms_norm(const bertrand::Variable& x, const bertrand::Variable& gamma, double epsilon);
