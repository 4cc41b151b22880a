#include "training/run/plan.h"

#include <algorithm>
#include <cmath>

#include "distributed/share.h"
#include "io/error.h"
#include "io/machine.h"
#include "io/signals.h"
#include "io/units.h"
#include "tensor/backends.h"
#include "training/run/devices.h"
#include "training/run/trained_model.h"

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

Plan make_plan(const Settings& settings, Objective& objective, const distributed::Replica& self) {
  Plan plan{.batch_size = settings.batch_size, .replicas = self.size(), .repeats_batch = settings.overfit_batch};
  // Before planning, which leaves more in use for one micro-batch than for another.
  plan.resident = io::resident_bytes();
  plan.examples_per_epoch = objective.examples(0);
  if (plan.examples_per_epoch == 0) fail(Failure::input, "training data: expected at least one example, got none");
  plan.steps_per_epoch = divide_up(plan.examples_per_epoch, plan.batch_size);
  plan.cut_steps(*settings.micro_batch_size);
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

void Plan::cut_steps(std::int64_t size) {
  micro_batch_size = size;
  micro_batches = divide_up(examples_per_step(), size);
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
  out += memory.text(replicas);
  return out;
}

}  // namespace bertrand::training
