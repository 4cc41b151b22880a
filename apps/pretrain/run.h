// Pre-training from flags to a finished run directory.
#pragma once
#include "apps/pretrain/options.h"

namespace bertrand::pretrain {

/// Throws Error as Trainer does, and for input, configuration, vocabulary or weights that are not as they should be.
void run(const Options& options);

}  // namespace bertrand::pretrain
