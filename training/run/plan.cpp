#include "training/run/plan.h"

#include <algorithm>
#include <cmath>

#include "distributed/gradient_sum.h"
#include "io/machine.h"
#include "io/signals.h"
#include "io/units.h"
#include "tensor/backends.h"
#include "tensor/dry_run.h"
#include "tensor/held_memory.h"
#include "training/run/data_order.h"
#include "training/run/devices.h"
#include "training/step/step.h"

namespace bertrand::training {

namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Steps of `epochs`, the last of which may be a part of one. Counting those of an epoch of text takes making its
/// examples, so epochs beyond the first hundred, or beyond the first ten million examples, are taken to be as long as
/// the counted ones are on average.
std::int64_t steps_of(double epochs, std::int64_t batch_size, Objective& objective) {
  constexpr std::int64_t kMostEpochs = 100, kMostExamples = 10'000'000;
  const auto whole = static_cast<std::int64_t>(epochs);
  std::int64_t steps = 0, counted = 0, examples = 0;
  for (; counted < std::min(whole, kMostEpochs) && examples < kMostExamples; ++counted) {
    const std::int64_t of_epoch = objective.examples(counted);
    steps += divide_up(of_epoch, batch_size);
    examples += of_epoch;
  }
  if (whole > counted)
    steps += static_cast<std::int64_t>(static_cast<double>(steps) / static_cast<double>(counted) *
                                       static_cast<double>(whole - counted));
  const double part = epochs - static_cast<double>(whole);
  if (part > 0)  // an epoch of which nothing is used is not made: for speed alone
    steps += static_cast<std::int64_t>(
        std::ceil(part * static_cast<double>(divide_up(objective.examples(whole), batch_size)) - 1e-9));
  return std::max<std::int64_t>(steps, 1);
}

std::int64_t count_parameters(nn::Module& model) {
  std::int64_t count = 0;
  for (const auto& [path, parameter] : model.parameters()) count += parameter->initial().shape.elements();
  return count;
}

/// Sums over micro-batches that wait while a replica computes its part of a step.
int waiting_sums(const Plan& plan, const distributed::Share& share, std::int64_t micro_batches) {
  // Half types are summed in f32, so that the last gradient is copied, too.
  const bool copied = compute_type(plan.precision) != plan.precision && micro_batches > 1;
  return distributed::GradientSum::buffers(share, micro_batches) + (copied ? 1 : 0);
}

/// The most that any step needs of what `needs(micro-batches)` says of one. A smaller step, as the last of an epoch may
/// be, can need more if several replicas share it, because the places where the tree is cut are others.
template <class Needs>
auto most_of_steps(const Plan& plan, const Needs& needs) {
  constexpr std::int64_t kMostTried = 512;  // the time grows with the square
  auto most = needs(plan.micro_batches);
  for (std::int64_t count = 1; plan.replicas > 1 && count < std::min(plan.micro_batches, kMostTried); ++count)
    most = std::max(most, needs(count));
  return most;
}

/// The most that any replica needs in any step.
int most_waiting_sums(const Plan& plan) {
  return most_of_steps(plan, [&](std::int64_t micro_batches) {
    int most = 0;
    for (int rank = 0; rank < plan.replicas; ++rank)
      most =
          std::max(most, waiting_sums(plan, distributed::share_of(micro_batches, rank, plan.replicas), micro_batches));
    return most;
  });
}

/// What sums with other processes take on the host.
std::size_t bytes_of_sums(const Settings& settings, const Plan& plan, const distributed::Collective& collective) {
  const DType dtype = compute_type(settings.precision);
  const int here = replicas_of_process(settings);
  if (collective.bytes_of_sums(dtype, 1) == 0) return 0;  // nothing to count: for speed alone
  const std::size_t most = most_of_steps(plan, [&](std::int64_t micro_batches) {
    std::size_t addends = 0;
    for (int first = here; first < plan.replicas; first += here) {
      const std::int64_t begin = distributed::share_of(micro_batches, first, plan.replicas).first;
      const std::int64_t end = distributed::share_of(micro_batches, first + here - 1, plan.replicas).end();
      std::vector<distributed::Addend> parts;
      for (std::int64_t part = begin; part < end; ++part) parts.push_back({.first = part, .values = {}});
      addends += distributed::add_siblings(parts, micro_batches, [](const Tensor&, const Tensor&) {}).size();
    }
    return addends;
  });
  return collective.bytes_of_sums(dtype, most);
}

/// The most memory in use while a replica makes a step of the largest micro-batches and evaluates the largest batch,
/// without the sums that wait.
std::size_t peak_bytes(const Settings& settings, const Plan& plan, const Objective& objective, Backend& device) {
  DryRun dry(device);
  const distributed::Replica self(dry);
  const std::unique_ptr<Objective> largest = objective.largest(self, plan.micro_batch_size);
  const nn::PartRates rates = rates_of(settings, *largest);
  nn::ParameterSet parameters(largest->model(), dry,
                              {.dtype = settings.precision, .initialize = false, .rate = [&](const std::string& name) {
                                 return rates.of(name);
                               }});
  optim::Optimizer optimizer(parameters, settings.optimizer);
  Stepper stepper({*largest, parameters, optimizer, self},
                  {.micro_batch_size = plan.micro_batch_size, .recompute_activations = settings.recompute_activations});
  // All micro-batches are the same, so that a few show what a step of many takes.
  const std::int64_t micro_batches = std::min<std::int64_t>(plan.micro_batches, 64);
  StepExamples step;
  for (std::int64_t i = 0; i < micro_batches; ++i)
    for (std::int64_t number = 0; number < largest->examples(0); ++number) step.numbers.push_back(number);
  stepper.start(step, 1, 0);
  {
    const NoGrad no_graph;
    largest->evaluate();
  }
  const int waiting = waiting_sums(plan, {.first = 0, .count = micro_batches}, micro_batches);
  return dry.memory().peak - optimizer.first_moments().bytes() * static_cast<std::size_t>(waiting);
}

/// A replica without a micro-batch would only cost memory.
void check_divisible(const Plan& plan, const Settings& settings) {
  if (plan.replicas <= plan.micro_batches) return;
  const std::int64_t examples = plan.examples_per_step();
  const bool alone = plan.replicas == replicas_of_process(settings);
  const bool gpus = settings.device.find(',') != std::string::npos;
  const std::string flag = gpus ? "--device" : "--replicas",
                    fewer = !alone ? "fewer processes"
                            : gpus ? "fewer GPUs"
                                   : fmt::format("--replicas {}", plan.micro_batches);
  if (plan.replicas > examples)
    fail(Failure::usage, "{}: expected at most {}, the examples of a step, got {}; hint: {}{}", flag, examples,
         plan.replicas, fewer,
         // A run is only resumed with its own batch size.
         plan.replicas <= plan.examples_per_epoch && !settings.resume
             ? fmt::format(", or --batch-size {} with --micro-batch-size 1", plan.replicas)
             : "");
  // The largest micro-batches that are enough: even ones if there are any.
  const std::int64_t even = divide_up(examples, plan.replicas);
  const std::int64_t size = divide_up(examples, even) >= plan.replicas ? even : examples / plan.replicas;
  fail(Failure::usage,
       "{}: expected at most {}, the micro-batches of a step ({} examples, {} at once), got {}{}; hint: {}, or "
       "--micro-batch-size {}{}",
       flag, plan.micro_batches, examples, plan.micro_batch_size, plan.replicas, alone ? "" : " in all processes",
       fewer, size, settings.resume ? ", with which this run may go on (the last bits of its result change)" : "");
}

/// What a process takes beside tensors and what it has when it plans: pieces of files on their way, threads, logs.
constexpr std::size_t kWorkOfProcess = std::size_t{32} << 20;

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
  const std::int64_t of_replica = divide_up(plan.micro_batches, plan.replicas) * plan.micro_batch_size;
  const std::size_t of_steps = objective.bytes_of_steps(std::min(plan.examples_per_step(), replicas * of_replica));
  memory.data += of_steps;
  const std::size_t peak = peak_bytes(settings, plan, objective, device);
  memory.activations = peak - std::min(peak, memory.total());
  memory.accumulation = wide * trained * static_cast<std::size_t>(most_waiting_sums(plan));
  const bool on_host = device.device().kind == Device::Kind::cpu;
  const std::size_t held = on_host ? most_held(memory.total()) : 0;
  memory.process = plan.resident + kWorkOfProcess + of_steps + bytes_of_sums(settings, plan, self.collective()) +
                   static_cast<std::size_t>(settings.replicas) * (held + objective.bytes_of_outputs());
  return memory;
}

/// What each replica computes of a full step.
std::string replicas_text(const Plan& plan) {
  const std::int64_t examples = plan.examples_per_step();
  std::vector<std::int64_t> micro_batches, of_replica;
  for (int rank = 0; rank < plan.replicas; ++rank) {
    const distributed::Share share = distributed::share_of(plan.micro_batches, rank, plan.replicas);
    micro_batches.push_back(share.count);
    of_replica.push_back(std::min(examples, share.end() * plan.micro_batch_size) - share.first * plan.micro_batch_size);
  }
  const auto range = [](const std::vector<std::int64_t>& counts) {
    const auto [least, most] = std::ranges::minmax(counts);
    return least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
  };
  return fmt::format("  replicas    {}, each with {} of the micro-batches: {} examples per replica, {} per step\n",
                     plan.replicas, range(micro_batches), range(of_replica), examples);
}

std::string memory_text(const MemoryPlan& memory, int replicas) {
  const auto text = [](std::size_t bytes) { return io::bytes_text(static_cast<double>(bytes)); };
  std::string parts = fmt::format("parameters {}, gradients {}, optimizer {}, activations {}", text(memory.parameters),
                                  text(memory.gradients), text(memory.moments), text(memory.activations));
  if (memory.accumulation > 0) parts += ", sums over micro-batches " + text(memory.accumulation);
  return fmt::format("  memory      {} predicted{} of {} available\n              {}\n", text(memory.total()),
                     replicas > 1 ? " on each replica" : "", text(memory.available), parts) +
         fmt::format("  process     at most {} on the host, {} of it examples\n", text(memory.process),
                     text(memory.data));
}

/// The mean of an example of the first epoch; of very many examples, that of some of them, evenly spaced.
double mean_tokens(const Objective& objective, std::int64_t examples) {
  constexpr std::int64_t kMost = 1'000;
  const std::int64_t counted = std::min(examples, kMost);
  std::int64_t tokens = 0;
  for (std::int64_t i = 0; i < counted; ++i) {
    io::leave_if_requested("planning");
    tokens += objective.tokens(0, i * (examples / counted));
  }
  return static_cast<double>(tokens) / static_cast<double>(counted);
}

/// The last step of an epoch has what the others leave; all other steps are full.
std::int64_t examples_of_all_steps(const Plan& plan) {
  if (plan.repeats_batch) return plan.total_steps * plan.examples_per_step();
  return plan.total_steps / plan.steps_per_epoch * plan.examples_per_epoch +
         plan.total_steps % plan.steps_per_epoch * plan.batch_size;
}

}  // namespace

nn::PartRates rates_of(const Settings& settings, Objective& objective) { return {objective.parts(), settings.parts}; }

Plan make_plan(const Settings& settings, Objective& objective, const distributed::Replica& self) {
  Plan plan{.batch_size = settings.batch_size,
            .micro_batch_size = *settings.micro_batch_size,
            .replicas = self.size(),
            .repeats_batch = settings.overfit_batch};
  // Before planning, which leaves more in use for one micro-batch than for another.
  plan.resident = io::resident_bytes();
  plan.examples_per_epoch = objective.examples(0);
  if (plan.examples_per_epoch == 0) fail(Failure::input, "training data: expected at least one example, got none");
  plan.steps_per_epoch = divide_up(plan.examples_per_epoch, plan.batch_size);
  plan.micro_batches = divide_up(plan.examples_per_step(), plan.micro_batch_size);
  check_divisible(plan, settings);
  plan.total_steps = settings.steps ? *settings.steps : steps_of(*settings.epochs, plan.batch_size, objective);
  plan.epochs = settings.steps ? static_cast<double>(plan.total_steps) / static_cast<double>(plan.steps_per_epoch)
                               : *settings.epochs;

  plan.tokens_per_example = mean_tokens(objective, plan.examples_per_epoch);

  plan.schedule = settings.schedule;
  plan.schedule.total_steps = plan.total_steps;
  if (settings.warmup_ratio) {
    plan.schedule.warmup_share = *settings.warmup_ratio;
    plan.schedule.warmup_steps =
        static_cast<std::int64_t>(static_cast<double>(plan.total_steps) * *settings.warmup_ratio);
  }
  plan.parameters = count_parameters(objective.model());
  plan.trained_parameters = rates_of(settings, objective).trained(objective.model());
  plan.precision = settings.precision;
  plan.memory = plan_memory(settings, plan, objective, self);
  return plan;
}

std::vector<std::string> doubts_of(const Settings& settings, const Plan& plan) {
  std::vector<std::string> doubts;
  if (plan.schedule.warmup_steps >= plan.total_steps)
    doubts.push_back(fmt::format("{}: {} of warm-up in a run of {}: the rate never falls",
                                 settings.warmup_ratio ? "--warmup-ratio" : "--warmup-steps",
                                 plan.schedule.warmup_steps, plan.total_steps));
  constexpr std::int64_t kDefaultBatch = 32;  // which no one has set
  if (plan.batch_size > std::max(plan.examples_per_epoch, kDefaultBatch))
    doubts.push_back(fmt::format("--batch-size: a step has {}, as many as there are, not {}",
                                 io::counted(plan.examples_per_epoch, "example"), plan.batch_size));
  if (const int cores = available_cores(); settings.threads.value_or(1) > cores)
    doubts.push_back(fmt::format("--threads: {} on {} cores wait for each other", *settings.threads, cores));
  return doubts;
}

namespace {

/// What --memory bounds: on the host all of the process, on a GPU what its replicas take of it.
std::size_t bounded_bytes(const Settings& settings, const MemoryPlan& memory, const distributed::Replica& self) {
  const bool on_host = self.backend().device().kind == Device::Kind::cpu;
  return on_host ? memory.process : memory.total() * static_cast<std::size_t>(settings.replicas);
}

bool is_within_bound(const Settings& settings, const MemoryPlan& memory, const distributed::Replica& self,
                     std::size_t spare = 0) {
  return !settings.most_memory || bounded_bytes(settings, memory, self) + spare <= *settings.most_memory;
}

}  // namespace

std::int64_t fitting_micro_batch(const Settings& settings, const Plan& plan, Objective& objective,
                                 const distributed::Replica& self, std::size_t bytes) {
  constexpr std::size_t kSpare = std::size_t{1} << 20;  // by which a process differs from start to start
  std::int64_t fits = 0, too_much = plan.micro_batch_size;
  while (too_much - fits > 1) {
    Plan smaller = plan;
    smaller.micro_batch_size = (fits + too_much) / 2;
    smaller.micro_batches = divide_up(plan.examples_per_step(), smaller.micro_batch_size);
    const MemoryPlan memory = plan_memory(settings, smaller, objective, self);
    const bool enough = memory.total() <= bytes && is_within_bound(settings, memory, self, kSpare);
    (enough ? fits : too_much) = smaller.micro_batch_size;
  }
  return fits;
}

std::size_t plannable(std::size_t bytes) { return bytes - bytes / 20; }

std::string fitting_hint(const Settings& settings, std::int64_t micro_batch_size) {
  return (micro_batch_size > 0 ? fmt::format("hint: --micro-batch-size {} would fit", micro_batch_size)
                               : "hint: not even a --micro-batch-size of 1 would fit") +
         (settings.recompute_activations == 0 ? "; or try --recompute-activations 1" : "");
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
         fitting_hint(settings, fitting_micro_batch(settings, plan, objective, self, most)));
  fail(Failure::memory, "--micro-batch-size: expected one that fits {} of memory, got {}, which takes {}; {}",
       text(most), plan.micro_batch_size, text(plan.memory.total()),
       fitting_hint(settings, fitting_micro_batch(settings, plan, objective, self, most)));
}

std::string Plan::text() const {
  const double tokens_per_step = tokens_per_example * static_cast<double>(examples_per_step());
  const auto all_examples = static_cast<double>(examples_of_all_steps(*this));
  std::string out = "plan\n";
  out += fmt::format("  step        {} in {} of at most {}, about {:.0f} tokens\n",
                     io::counted(examples_per_step(), "example"), io::counted(micro_batches, "micro-batch"),
                     micro_batch_size, tokens_per_step);
  if (replicas > 1) out += replicas_text(*this);
  out += fmt::format("  epoch       {}, {}\n", io::counted(examples_per_epoch, "example"),
                     io::counted(steps_per_epoch, "step"));
  const std::string passes =
      repeats_batch ? " of the first batch" : fmt::format(" = {:.4g} epoch{}", epochs, epochs == 1 ? "" : "s");
  out += fmt::format("  run         {}{}, about {:.0f} examples, {:.0f} tokens\n", io::counted(total_steps, "step"),
                     passes, all_examples, all_examples * tokens_per_example);
  out += fmt::format("  rate        up to {:g} after {} of warm-up\n", schedule.learning_rate,
                     io::counted(schedule.warmup_steps, "step"));
  out += fmt::format("  parameters  {} in {}\n", parameters, name_of(precision));
  out += memory_text(memory, replicas);
  return out;
}

}  // namespace bertrand::training
