// Pre-training from flags to a finished run directory.
#pragma once
#include "apps/pretrain/options.h"

namespace bertrand {

/// Throws Error as Trainer does, and for input, configuration, vocabulary or weights that are not as they should be.
void pretrain(const PretrainOptions& options);

}  // namespace bertrand
