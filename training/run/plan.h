// What a run will do, worked out before its first step: steps and epochs, micro-batches, tokens, memory.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "training/run/settings.h"
#include "training/step/objective.h"

namespace bertrand::training {

/// Bytes at the peak of any step or evaluation on the replica that needs most, and what they are.
struct MemoryPlan {
  std::size_t parameters = 0, gradients = 0, moments = 0;
  std::size_t accumulation = 0;  ///< gradients of micro-batches waiting to be added up
  std::size_t activations = 0;   ///< of the largest micro-batch that any epoch can have, or of evaluating
  std::size_t total() const { return parameters + gradients + moments + accumulation + activations; }
  std::size_t data = 0;       ///< examples, a part of `process`
  std::size_t available = 0;  ///< what the device has for this replica
  /// Bounds what the process has resident on the host at any time, saving and evaluating too: its program, vocabulary
  /// and examples and, on the CPU, total() for each of its replicas with the blocks that the CPU keeps.
  std::size_t process = 0;
};

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
  /// Several lines for people.
  std::string text() const;
};

/// How the parts of the objective's model are trained. Throws Error(Failure::usage) if --freeze names another part.
nn::PartRates rates_of(const Settings& settings, Objective& objective);

/// Throws Error(Failure::input) if there is no example, and Error(Failure::usage) if a step has fewer micro-batches
/// than there are replicas. The memory of activations is that of the largest examples in a dry run: nothing is
/// allocated or computed.
Plan make_plan(const Settings& settings, Objective& objective, const distributed::Replica& self);

/// Settings that no one means, one line each: what was set, and what follows from it.
std::vector<std::string> doubts_of(const Settings& settings, const Plan& plan);

/// The largest micro-batch, smaller than the plan's, whose step takes at most `bytes` and stays within --memory; 0 if
/// there is none.
std::int64_t fitting_micro_batch(const Settings& settings, const Plan& plan, Objective& objective,
                                 const distributed::Replica& self, std::size_t bytes);
/// 95 % of `bytes`: the rest is fragmentation and kernels.
std::size_t plannable(std::size_t bytes);
/// "; hint: --micro-batch-size 8 would fit", or that none would.
std::string fitting_hint(const Settings& settings, std::int64_t micro_batch_size);
/// Throws Error(Failure::memory), with the micro-batch that would fit, if the plan takes more than there is; on a
/// GPU, more than is plannable: it also holds kernels, what the library of products works in, and gaps.
void check_memory(const Settings& settings, const Plan& plan, Objective& objective, const distributed::Replica& self);

}  // namespace bertrand::training
