// predict's run: lines in, answers out, in the same order.
#pragma once
#include "apps/predict/options.h"

namespace bertrand::predict {

/// Throws Error: what the model, the flags or the files lack. A bad line and a signal to stop end the run too, after
/// all answers before them were written.
void run(const Options& options);

}  // namespace bertrand::predict
