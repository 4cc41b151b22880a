// A model with all that one replica trains it with. The plan, a rehearsal and the run make it in this one way: a plan
// is right only if it counts what the run has.
#pragma once
#include "distributed/replica.h"
#include "training/run/checkpoint.h"
#include "training/run/settings.h"
#include "training/step/step.h"

namespace bertrand::training {

/// How the parts of the objective's model are trained. Throws Error(Failure::usage) if --freeze names another part.
PartRates rates_of(const Settings& settings, Objective& objective);

/// Stays where it is made, because its members refer to each other.
struct TrainedModel {
  /// `objective` and `self` must outlive it. `initialize`: the parameters are drawn from the seed; else they are
  /// 0, as before share_from_first() or where nothing is computed.
  TrainedModel(const Settings& settings, std::int64_t micro_batch_size, Objective& objective,
               const distributed::Replica& self, bool initialize);
  TrainedModel(const TrainedModel&) = delete;
  TrainedModel& operator=(const TrainedModel&) = delete;

  Training training() { return {objective, parameters, optimizer}; }

  Objective& objective;
  nn::ParameterSet parameters;
  optim::Optimizer optimizer;
  Stepper stepper;
};

/// Gives all replicas the parameters of the first one and, if `moments`, its moments. All replicas call it.
void share_from_first(const Training& training, const distributed::Replica& self, bool moments);

}  // namespace bertrand::training
