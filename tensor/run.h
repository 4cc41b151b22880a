// How an op starts its kernel: named and timed, and not at all in a dry run.
#pragma once
#include "tensor/profiler.h"

namespace bertrand {

/// Calls `kernel` with the kernels of `backend`. In a dry run it does nothing.
template <class Kernel>
void run(Backend& backend, const Kernel& kernel) {
  if (Kernels* kernels = backend.kernels()) kernel(*kernels);
}

/// The same as the op `name`, timed if a profiler looks on.
template <class Kernel>
void run(Backend& backend, const char* name, const Work& work, const Kernel& kernel) {
  const Span span(backend, name, work);
  run(backend, kernel);
}

}  // namespace bertrand
