// From --device to a backend.
#pragma once
#include <memory>

#include "apps/training/settings.h"
#include "tensor/backend.h"

namespace bertrand::training {

/// Opens the device that the settings name. Throws Error(Failure::usage) for names that are none, a device named twice,
/// and devices that this build does not have.
std::unique_ptr<Backend> open_backend(const Settings& settings);

}  // namespace bertrand::training
