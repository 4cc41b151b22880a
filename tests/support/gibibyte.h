// A device whose free memory does not change with what other programs take.
#pragma once
#include "tensor/dry_run.h"

namespace support {

/// Stands in for `device`, as DryRun does, with a gibibyte that could be had.
struct OfGibibyte : bertrand::DryRun {
  using DryRun::DryRun;
  std::size_t available_memory() const override { return kBytes; }
  static constexpr std::size_t kBytes = std::size_t{1} << 30;
};

}  // namespace support
