// What a run will take of memory, worked out before its first step, and the micro-batch with which it fits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "distributed/replica.h"
#include "training/run/settings.h"
#include "training/step/objective.h"

namespace bertrand::training {

struct Plan;

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

  /// Lines of a plan. With several replicas it is that of each.
  std::string text(int replicas) const;
};

/// For a plan whose other members are known. The memory of activations is that of the largest examples in a dry run:
/// nothing is allocated or computed.
MemoryPlan plan_memory(const Settings& settings, const Plan& plan, const Objective& objective,
                       const distributed::Replica& self);

/// The largest micro-batch, smaller than the plan's, whose step takes at most `bytes` and stays within --memory; 0 if
/// there is none.
std::int64_t fitting_micro_batch(const Settings& settings, const Plan& plan, Objective& objective,
                                 const distributed::Replica& self, std::size_t bytes);
/// 95 % of `bytes`: the rest is fragmentation and kernels.
std::size_t plannable(std::size_t bytes);
/// "hint: --micro-batch-size 8 would fit", with --recompute-activations if a larger one fits so, or that none would.
std::string fitting_hint(const Settings& settings, const Plan& plan, Objective& objective,
                         const distributed::Replica& self, std::size_t bytes);
/// Throws Error(Failure::memory), with the micro-batch that would fit, if the plan takes more than there is; on a
/// GPU, more than is plannable: it also holds kernels, what the library of products works in, and gaps.
void check_memory(const Settings& settings, const Plan& plan, Objective& objective, const distributed::Replica& self);

}  // namespace bertrand::training
