#pragma once
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "tensor/backends.h"

namespace bertrand::testing {

/// Null if there is no GPU, unless BERTRAND_NEEDS_GPU is set: then a module that cannot be loaded is an error.
inline std::unique_ptr<Backend> gpu_or_skip(const CudaOptions& options = {}) {
  try {
    return open_cuda(options);
  } catch (const Error& error) {
    if (std::getenv("BERTRAND_NEEDS_GPU")) throw;
    MESSAGE("SKIPPED: " << std::string(error.what()));
    return nullptr;
  }
}

/// Whether golden data is there. If BERTRAND_NEEDS_GPU is set, absent data is an error: a GPU is rare, and a skipped
/// test must not look like a passed one.
inline bool present_or_skip(const std::filesystem::path& data) {
  if (std::filesystem::exists(data)) return true;
  REQUIRE_MESSAGE(!std::getenv("BERTRAND_NEEDS_GPU"), data.string() << " is not there");
  MESSAGE("SKIPPED: " << data.string() << " is not there");
  return false;
}

}  // namespace bertrand::testing
