// A whole fine-tuning run, from the flags to the files.
#pragma once
#include "apps/finetune/options.h"

namespace bertrand::finetune {

/// Trains on --train where given, evaluates on --eval, predicts --predict, as far as each is asked for.
/// Fills in the flags whose defaults depend on the model.
void run(Options& options);

}  // namespace bertrand::finetune
