// Pre-training from flags to a finished run directory.
#pragma once
#include "apps/pretrain/options.h"

namespace bertrand::pretrain {

/// Throws Error as run_training() does, and for input, configuration, vocabulary or weights that are not as they should
/// be. Fills in the flags whose defaults depend on the model.
void run(Options& options);

}  // namespace bertrand::pretrain
