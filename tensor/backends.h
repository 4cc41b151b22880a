// Opens backends. Kernels are run-time modules (tensor/module.h), so that one binary serves every machine.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tensor/backend.h"
#include "tensor/control_groups.h"

namespace bertrand {

struct CpuOptions {
  int threads = 0;               ///< 0: every core this process may use
  std::string kernels = "auto";  ///< auto (the best the processor has) or one of runnable_cpu_kernels()
};

/// A CPU backend. Throws Error(Failure::usage) if the kernel set is unknown, the processor lacks it or its module is
/// not found, and Error(Failure::io) if the module cannot be opened or is of another build.
std::unique_ptr<Backend> open_cpu(const CpuOptions& options = {});

struct CudaOptions {
  int index = 0;          ///< which GPU
  bool emulated = false;  ///< run the kernels on the processor: slow, for tests and for stepping through them
  /// Other GPUs of this process work at the same time: all code is loaded now, as a GPU may wait for another one when
  /// it is needed. That takes seconds and some hundred MB.
  bool beside_others = false;
  bool tf32 = false;  ///< products of f32 may round their operands to 11 bits, which the tensor cores take
  /// Each shape of product is multiplied by the fastest of a few algorithms, tried out on first use. Another run may
  /// find another one the fastest, and then differs in the last bits.
  bool measured_products = false;
};

/// A backend on a GPU. Throws Error(Failure::usage) with the reason if there is no module, no driver, no such GPU, or
/// one too old, and Error(Failure::io) if the module is of another build.
std::unique_ptr<Backend> open_cuda(const CudaOptions& options = {});

/// What CpuOptions::kernels may be on some processor, auto first.
const std::vector<std::string>& cpu_kernel_names();

/// The kernel sets that this processor can run and that have a module, best first. Last come those that are built for
/// the tests: the arithmetic of other processors in plain C++.
std::vector<std::string> runnable_cpu_kernels();

/// The cores this process may use: those of its affinity mask, and at most the quota of each control group around it,
/// rounded.
int available_cores(const ControlGroups& groups = {});

}  // namespace bertrand
