// What stands in place of a run to see whether it would work: --dry-run and --overfit-batch. Neither writes anything.
#pragma once
#include "training/run/plan.h"
#include "training/run/run_training.h"

namespace bertrand::training {

struct Rehearsal {
  const TrainingRun& run;
  Objective& objective;
  const Plan& plan;
  const RunReplica& replica;
};

/// Everything up to the first step, and a step and an evaluation of the longest examples, so that memory is taken as it
/// was planned. Throws Error as the run would. All replicas call it.
void dry_run(const Rehearsal& rehearsal);

/// Trains on the batch of the first step alone, at the full rate, until it is learnt or --steps are over, and says in
/// words what that shows. Throws Error(Failure::numerics), saying what is usually wrong, if the loss hardly falls. All
/// replicas call it.
void overfit_batch(const Rehearsal& rehearsal);

}  // namespace bertrand::training
