#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>

#include "tensor/backends.h"

namespace bertrand::testing {

/// Null where there is no card, unless BERTRAND_NEEDS_CARD is set: then a module that cannot be loaded is an error.
inline std::unique_ptr<Backend> card_or_skip(const CudaOptions& options = {}) {
  try {
    return open_cuda(options);
  } catch (const Error& error) {
    if (std::getenv("BERTRAND_NEEDS_CARD")) throw;
    MESSAGE("SKIPPED: " << error.what());
    return nullptr;
  }
}

}  // namespace bertrand::testing
