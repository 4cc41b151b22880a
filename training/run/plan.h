// What a run will do, worked out before its first step: steps and epochs, micro-batches, tokens, memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "training/run/memory_plan.h"
#include "training/run/settings.h"
#include "training/step/objective.h"

namespace bertrand::training {

struct Plan {
  std::int64_t batch_size = 0, micro_batch_size = 0;
  std::int64_t micro_batches = 0;  ///< of a full step
  int replicas = 1;
  bool repeats_batch = false;           ///< every step is the first one again
  std::int64_t examples_per_epoch = 0;  ///< of the first epoch
  std::int64_t steps_per_epoch = 0;     ///< of the first epoch
  std::int64_t total_steps = 0;
  double epochs = 0;
  double tokens_per_example = 0;
  std::int64_t parameters = 0, trained_parameters = 0;
  DType precision = DType::f32;
  optim::ScheduleOptions schedule;
  std::size_t resident = 0;  ///< bytes of the process before it plans
  MemoryPlan memory;

  /// Of a full step.
  std::int64_t examples_per_step() const { return std::min(batch_size, examples_per_epoch); }
  /// Sets micro_batch_size, and how many of them a full step has.
  void cut_steps(std::int64_t size);
  /// Several lines for people.
  std::string text() const;
};

/// Throws Error(Failure::input) if there is no example, and Error(Failure::usage) if a step has fewer micro-batches
/// than there are replicas. The memory of activations is that of the largest examples in a dry run: nothing is
/// allocated or computed.
Plan make_plan(const Settings& settings, Objective& objective, const distributed::Replica& self);

/// Settings that no one means, one line each: what was set, and what follows from it.
std::vector<std::string> doubts_of(const Settings& settings, const Plan& plan);

}  // namespace bertrand::training
