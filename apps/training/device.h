// From --device, --replicas and --threads to backends.
#pragma once
#include <memory>
#include <vector>

#include "apps/training/settings.h"
#include "tensor/backend.h"

namespace bertrand::training {

/// One backend for every replica of this process: `replicas` on each device named, the cores shared out among them.
/// Throws Error(Failure::usage) for names that are none, a device named twice, and devices that this build does not
/// have.
std::vector<std::unique_ptr<Backend>> open_backends(const Settings& settings);

}  // namespace bertrand::training
