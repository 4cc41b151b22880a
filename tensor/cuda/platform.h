// What the sources of tensor/cuda are compiled against: CUDA's own headers if the compiler is nvcc, else the
// emulation that runs the same kernels on the processor. This is the one place that asks which.
#pragma once
#ifdef __CUDACC__
#include <cublasLt.h>
#include <cuda_runtime.h>

#include "tensor/cuda/gpu.h"
#else
#include "tensor/cuda/emulation/blas.h"
#include "tensor/cuda/emulation/no_gpu.h"
#include "tensor/cuda/emulation/runtime.h"
#include "tensor/cuda/emulation/shared.h"
#endif
