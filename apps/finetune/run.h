// A whole fine-tuning run, from the flags to the files.
#pragma once
#include "apps/finetune/options.h"
#include "training/run/run_training.h"

namespace bertrand::finetune {

/// Trains on --train, evaluates on --eval, predicts --predict, as far as each is asked for.
/// Fills in the flags whose defaults depend on the model.
/// Returns what training came to. `said_plan`: as in training::TrainingRun.
training::TrainingResult run(Options& options, std::string* said_plan = nullptr);

/// Throws Error as run() would before its first step, if --train is given: for settings, model and data, and a plan
/// that does not fit. Looks at no --output, prints nothing and leaves nothing behind.
void check(Options options);

}  // namespace bertrand::finetune
