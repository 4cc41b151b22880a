#include "training/run/memory_plan.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "distributed/gradient_sum.h"
#include "io/error.h"
#include "io/units.h"
#include "tensor/backends.h"
#include "tensor/dry_run.h"
#include "tensor/held_memory.h"
#include "training/run/devices.h"
#include "training/run/plan.h"
#include "training/run/trained_model.h"

namespace bertrand::training {

namespace {

/// Half types are summed in f32, so that the last gradient of several micro-batches is copied, too.
int copies_of_gradients(const Plan& plan) {
  return compute_type(plan.precision) != plan.precision && plan.micro_batches > 1 ? 1 : 0;
}

/// Of the gradients of micro-batches that wait to be added up.
int buffers_of_gradients(const Plan& plan) {
  return distributed::GradientSum::most_buffers(plan.micro_batches, plan.replicas) + copies_of_gradients(plan);
}

/// What sums with other processes take on the host, in any step.
std::size_t bytes_of_sums(const Settings& settings, const Plan& plan, const distributed::Collective& collective) {
  const int here = replicas_of_process(settings);
  const std::int64_t of_process = here * distributed::share_of(plan.micro_batches, 0, plan.replicas).count;
  const auto others = static_cast<std::size_t>(plan.replicas / here - 1);
  return collective.bytes_of_sums(compute_type(settings.precision), others * distributed::most_nodes(of_process));
}

/// The most memory in use while a replica makes a step of the largest micro-batches and evaluates the largest batch,
/// without the sums that wait.
std::size_t peak_bytes(const Settings& settings, const Plan& plan, const Objective& objective, Backend& device) {
  DryRun dry(device);
  const distributed::Replica self(dry);
  const std::unique_ptr<Objective> largest = objective.largest(self, plan.micro_batch_size);
  TrainedModel model(settings, plan.micro_batch_size, *largest, self, false);
  // All micro-batches are the same, so that a few show what a step of many takes.
  const std::int64_t micro_batches = std::min<std::int64_t>(plan.micro_batches, 64);
  StepExamples step;
  for (std::int64_t i = 0; i < micro_batches; ++i)
    for (std::int64_t number = 0; number < largest->examples(0); ++number) step.numbers.push_back(number);
  model.stepper.start(step, 1, 0);
  {
    const NoGrad no_graph;
    largest->evaluate();
  }
  const int waiting = distributed::GradientSum::most_buffers(micro_batches, 1) + copies_of_gradients(plan);
  return dry.memory().peak - model.optimizer.first_moments().bytes() * static_cast<std::size_t>(waiting);
}

/// What a process takes beside tensors and what it has when it plans: pieces of files on their way, threads, logs.
constexpr std::size_t kWorkOfProcess = std::size_t{32} << 20;

/// What --memory bounds: on the host all of the process, on a GPU what its replicas take of it.
std::size_t bounded_bytes(const Settings& settings, const MemoryPlan& memory, const distributed::Replica& self) {
  const bool on_host = self.backend().device().kind == Device::Kind::cpu;
  return on_host ? memory.process : memory.total() * static_cast<std::size_t>(settings.replicas);
}

bool is_within_bound(const Settings& settings, const MemoryPlan& memory, const distributed::Replica& self,
                     std::size_t spare = 0) {
  return !settings.most_memory || bounded_bytes(settings, memory, self) + spare <= *settings.most_memory;
}

/// Whether a run that is begun anew with this plan would be within `bytes` and --memory.
bool fits(const Settings& settings, const Plan& plan, const Objective& objective, const distributed::Replica& self,
          std::size_t bytes) {
  constexpr std::size_t kSpare = std::size_t{1} << 20;  // by which a process differs from start to start
  const MemoryPlan memory = plan_memory(settings, plan, objective, self);
  return memory.total() <= bytes && is_within_bound(settings, memory, self, kSpare);
}

}  // namespace

MemoryPlan plan_memory(const Settings& settings, const Plan& plan, const Objective& objective,
                       const distributed::Replica& self) {
  Backend& device = self.backend();
  const auto flat = static_cast<std::size_t>(plan.parameters) * size_of(settings.precision);
  const std::size_t wide = size_of(compute_type(settings.precision));
  const auto trained = static_cast<std::size_t>(plan.trained_parameters);
  const bool has_masters = compute_type(settings.precision) != settings.precision;
  // So many share the memory. Replicas on several GPUs are counted by the GPUs, and so are processes that have one
  // each.
  const int processes = device.device().kind == Device::Kind::cpu ? self.collective().processes_on_this_host() : 1;
  MemoryPlan memory{.parameters = flat + (has_masters ? wide * static_cast<std::size_t>(plan.parameters) : 0),
                    .gradients = trained * size_of(settings.precision),
                    .moments = 2 * wide * trained,
                    .accumulation = 0,
                    .data = objective.data_bytes(),
                    .available = device.available_memory() / static_cast<std::size_t>(settings.replicas * processes)};
  if (settings.most_memory) {
    const std::size_t share = *settings.most_memory / static_cast<std::size_t>(settings.replicas);
    memory.available =
        settings.plan_only ? share : std::min(memory.available, share);  // a plan may be for another machine
  }
  const int replicas = replicas_of_process(settings);
  const std::int64_t of_replica =
      distributed::share_of(plan.micro_batches, 0, plan.replicas).count * plan.micro_batch_size;
  const std::size_t of_steps = objective.bytes_of_steps(std::min(plan.examples_per_step(), replicas * of_replica));
  memory.data += of_steps;
  const std::size_t peak = peak_bytes(settings, plan, objective, device);
  memory.activations = peak - std::min(peak, memory.total());
  memory.accumulation = wide * trained * static_cast<std::size_t>(buffers_of_gradients(plan));
  const bool on_host = device.device().kind == Device::Kind::cpu;
  const std::size_t held = on_host ? most_held(memory.total()) : 0;
  memory.process = plan.resident + kWorkOfProcess + of_steps + bytes_of_sums(settings, plan, self.collective()) +
                   static_cast<std::size_t>(settings.replicas) * (held + objective.bytes_of_outputs());
  return memory;
}

std::int64_t fitting_micro_batch(const Settings& settings, const Plan& plan, Objective& objective,
                                 const distributed::Replica& self, std::size_t bytes) {
  // Memory grows with the size only among sizes of which as much waits to be added up: a smaller one can take more.
  std::map<std::pair<int, std::size_t>, std::vector<std::int64_t>> alike;
  Plan smaller = plan;
  for (std::int64_t size = 1; size < plan.micro_batch_size && size <= plan.examples_per_step(); ++size) {
    smaller.cut_steps(size);
    alike[{buffers_of_gradients(smaller), bytes_of_sums(settings, smaller, self.collective())}].push_back(size);
  }
  std::int64_t largest = 0;
  for (const auto& [waiting, sizes] : alike) {
    const auto too_much = std::ranges::partition_point(sizes, [&](std::int64_t size) {
      smaller.cut_steps(size);
      return fits(settings, smaller, objective, self, bytes);
    });
    if (too_much != sizes.begin()) largest = std::max(largest, *std::prev(too_much));
  }
  return largest;
}

std::size_t plannable(std::size_t bytes) { return bytes - bytes / 20; }

std::string fitting_hint(const Settings& settings, const Plan& plan, Objective& objective,
                         const distributed::Replica& self, std::size_t bytes) {
  const std::int64_t fitting = fitting_micro_batch(settings, plan, objective, self, bytes);
  std::vector<std::string> choices;
  if (fitting > 0) choices.push_back(fmt::format("--micro-batch-size {}", fitting));
  if (settings.recompute_activations == 0) {
    Settings recomputing = settings;
    recomputing.recompute_activations = 1;
    const std::int64_t larger = fits(recomputing, plan, objective, self, bytes)
                                    ? plan.micro_batch_size
                                    : fitting_micro_batch(recomputing, plan, objective, self, bytes);
    if (larger > fitting)
      choices.push_back(fmt::format("--micro-batch-size {} with --recompute-activations 1", larger));
  }
  return choices.empty() ? "hint: no smaller --micro-batch-size would fit"
                         : fmt::format("hint: {} would fit", fmt::join(choices, " or "));
}

void check_memory(const Settings& settings, const Plan& plan, Objective& objective, const distributed::Replica& self) {
  const bool on_gpu = self.backend().device().kind == Device::Kind::cuda;
  const std::size_t most = on_gpu ? plannable(plan.memory.available) : plan.memory.available;
  if (plan.memory.total() <= most && is_within_bound(settings, plan.memory, self)) return;
  const auto text = [](std::size_t bytes) { return io::bytes_text(static_cast<double>(bytes)); };
  if (settings.most_memory && !on_gpu && *settings.most_memory < plan.resident)
    fail(Failure::memory, "--memory: expected at least {}, which the process has before it trains, got {}",
         text(plan.resident), settings.memory);
  if (settings.most_memory)
    fail(Failure::memory, "--memory: expected at least {}, which a micro-batch of {} takes at most, got {}; {}",
         text(bounded_bytes(settings, plan.memory, self)), plan.micro_batch_size, settings.memory,
         fitting_hint(settings, plan, objective, self, most));
  fail(Failure::memory, "--micro-batch-size: expected one that fits {} of memory, got {}, which takes {}; {}",
       text(most), plan.micro_batch_size, text(plan.memory.total()),
       fitting_hint(settings, plan, objective, self, most));
}

std::string MemoryPlan::text(int replicas) const {
  const auto shown = [](std::size_t bytes) { return io::bytes_text(static_cast<double>(bytes)); };
  std::string parts = fmt::format("parameters {}, gradients {}, optimizer {}, activations {}", shown(parameters),
                                  shown(gradients), shown(moments), shown(activations));
  if (accumulation > 0) parts += ", sums over micro-batches " + shown(accumulation);
  return fmt::format("  memory      {} predicted{} of {} available\n              {}\n", shown(total()),
                     replicas > 1 ? " on each replica" : "", shown(available), parts) +
         fmt::format("  process     at most {} on the host, {} of it examples\n", shown(process), shown(data));
}

}  // namespace bertrand::training
