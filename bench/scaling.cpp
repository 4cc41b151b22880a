// Times training steps of a random BERT on replicas, and the sum of gradients by itself. Started by mpirun, the
// replicas are those of all processes. bench/scaling.sh makes a table of it.
//   scaling train --model tiny --micro-batch 16 --micro-batches 2 [--replicas N] [--threads N] [--device LIST] …
//   scaling fits  --model tiny …   the largest micro-batch whose step the memory of each replica holds, from the plan
//   scaling sum   --elements 110000000 [--replicas N] [--threads N]
//   scaling alone --model tiny …   the same step without the others: what it takes before, during and after backward
// The first replica prints one JSON line.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <numeric>

#include "apps/cli/main_guard.h"
#include "bert/objectives/pretraining.h"
#include "distributed/exchange.h"
#include "distributed/processes.h"
#include "tensor/backends.h"
#include "tensor/profiler.h"
#include "tensor/random.h"
#include "training/run/devices.h"
#include "training/run/plan.h"
#include "training/step/step.h"

using namespace bertrand;

namespace {

struct Options {
  training::Settings settings;
  std::string model = "tiny", precision = "f32";
  std::int64_t micro_batches = 2;  // of a step
  std::int64_t length = 128;       // tokens of an example
  std::string sums = "backward";   // when gradients are summed: during backward where that can be, or at its end
  double memory = 0;               // GB of each replica; 0: what there is
  std::int64_t elements = 110'000'000;
  double seconds = 10;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Of all threads of this process.
double processor_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::int64_t peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

DType precision_of(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    if (name == name_of(dtype)) return dtype;
  fail(Failure::usage, "--precision: expected f32, bf16 or f16, got \"{}\"", name);
}

/// Sequences of random words, 20 of 128 masked.
class RandomExamples : public data::PretrainingExamples {
 public:
  explicit RandomExamples(std::int64_t length) : length_(length), masked_(length * 20 / 128) {}

  std::int64_t examples(std::int64_t) override { return 1 << 20; }
  data::PretrainingExample example(std::int64_t epoch, std::int64_t number) override {
    Random random(mix(static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(number)));
    data::PretrainingExample example;
    for (std::int64_t t = 0; t < length_; ++t) {
      example.token_ids.push_back(static_cast<std::int32_t>(random.below(30522)));
      example.token_types.push_back(t < length_ / 2 ? 0 : 1);
    }
    for (std::int64_t m = 0; m < masked_; ++m) {
      example.masked_positions.push_back(static_cast<std::int32_t>(6 * m));
      example.masked_ids.push_back(static_cast<std::int32_t>(random.below(30522)));
    }
    return example;
  }
  std::int64_t tokens(std::int64_t, std::int64_t) override { return length_; }
  std::int64_t masked(std::int64_t, std::int64_t) override { return masked_; }
  std::int64_t longest() const override { return length_; }
  std::vector<data::ExampleSize> largest(std::int64_t count) const override {
    return std::vector<data::ExampleSize>(static_cast<std::size_t>(count), {.tokens = length_, .masked = masked_});
  }
  std::size_t bytes() const override { return 0; }

 private:
  const std::int64_t length_, masked_;
};

/// Whether the time is up: the first replica's clock counts.
bool goes_on(const distributed::Replica& self, double end) { return distributed::broadcast_value(self, now() < end); }

/// The objective, and when the last micro-batch's forward pass was over.
class TimedObjective : public objectives::PretrainingObjective {
 public:
  using objectives::PretrainingObjective::PretrainingObjective;
  std::vector<training::LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override {
    auto parts = objectives::PretrainingObjective::loss(first, count, key);
    forward_end = now();
    return parts;
  }
  double forward_end = 0;
};

/// The steps that one replica makes.
class Training {
 public:
  Training(const Options& options, const distributed::Replica& self)
      : batch_(*options.settings.micro_batch_size * options.micro_batches),
        examples_(options.length),
        objective_(bert::Config::preset(options.model),
                   {.training = examples_, .evaluation = nullptr, .vocabulary = ""}, self),
        parameters_(objective_.model(), self.backend(), {.dtype = precision_of(options.precision)}),
        optimizer_(parameters_, {}),
        stepper_({objective_, parameters_, optimizer_, self},
                 {.seed = 1, .micro_batch_size = *options.settings.micro_batch_size}) {}

  /// Seconds of one more.
  double step() {
    training::StepExamples numbers{.epoch = 0, .numbers = std::vector<std::int64_t>(static_cast<std::size_t>(batch_))};
    std::iota(numbers.numbers.begin(), numbers.numbers.end(), steps_ * batch_);
    const double begin = now();
    stepper_.finish(stepper_.start(numbers, ++steps_, 1e-4));
    return now() - begin;
  }
  std::int64_t batch() const { return batch_; }
  const TimedObjective& objective() const { return objective_; }
  const nn::ParameterSet& parameters() const { return parameters_; }

 private:
  const std::int64_t batch_;
  RandomExamples examples_;
  TimedObjective objective_;
  nn::ParameterSet parameters_;
  optim::Optimizer optimizer_;
  training::Stepper stepper_;
  std::int64_t steps_ = 0;
};

/// The collective of another replica, whose sums begin when backward has ended.
class AtTheEnd : public distributed::Collective {
 public:
  explicit AtTheEnd(distributed::Collective& inner) : inner_(inner) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_reduce_sum(std::span<const distributed::Addend> mine, std::int64_t parts, const Tensor& out) override {
    inner_.all_reduce_sum(mine, parts, out);
  }
  void broadcast(const Tensor& x, int root) override { inner_.broadcast(x, root); }
  void barrier() override { inner_.barrier(); }
  void abort(const std::string& reason, double waited) override { inner_.abort(reason, waited); }
  int processes_on_this_host() const override { return inner_.processes_on_this_host(); }

 private:
  distributed::Collective& inner_;
};

void train(const Options& options, const distributed::Replica& replica) {
  const distributed::Replica at_the_end(replica.backend(), std::make_unique<AtTheEnd>(replica.collective()));
  const distributed::Replica& self = options.sums == "end" ? at_the_end : replica;
  Training training(options, self);
  training.step();
  training.step();
  Profiler profiler;
  if (self.first() && !options.settings.profile.empty()) self.backend().profiler = &profiler;
  std::vector<double> times;
  for (const double end = now() + options.seconds; times.size() < 4 || goes_on(self, end);)
    times.push_back(training.step());
  self.backend().profiler = nullptr;
  if (!self.first()) return;
  const double seconds = median(times);
  fmt::print(
      "{{\"model\":\"{}\",\"precision\":\"{}\",\"replicas\":{},\"micro_batch\":{},\"batch\":{},\"steps\":{},\"median_"
      "s\":{:.5f},"
      "\"min_s\":{:.5f},\"examples_per_second\":{:.2f},\"rss_MB\":{},\"peak_MB\":{},\"gradient_bytes\":{}}}\n",
      options.model, options.precision, self.size(), *options.settings.micro_batch_size, training.batch(), times.size(),
      seconds, *std::ranges::min_element(times), static_cast<double>(training.batch()) / seconds, peak_megabytes(),
      self.backend().memory().peak / 1'000'000, training.parameters().gradients().bytes());
  if (!options.settings.profile.empty()) fmt::print(stderr, "{}", profiler.table());
}

/// Prints the largest micro-batch that the plan of a run on these replicas accepts, at most 2^16.
void fits(const Options& options, const distributed::Replica& self) {
  if (!self.first()) return;
  constexpr std::int64_t kMost = 1 << 16;
  RandomExamples examples(options.length);
  objectives::PretrainingObjective objective(bert::Config::preset(options.model), {.training = examples}, self);
  training::Settings settings = options.settings;
  settings.precision = {precision_of(options.precision)};
  settings.steps = 1;
  const auto plan_of = [&](std::int64_t size) {
    settings.micro_batch_size = size;
    settings.batch_size = size * options.micro_batches;
    return training::make_plan(settings, objective, self);
  };
  std::int64_t size = 1;
  training::Plan plan = plan_of(size);
  const std::size_t bytes =
      options.memory > 0 ? static_cast<std::size_t>(options.memory * 1e9) : training::plannable(plan.memory.available);
  while (size < kMost && plan.memory.total() <= bytes) plan = plan_of(size *= 2);
  const bool all = plan.memory.total() <= bytes;
  fmt::print("{{\"fits\":{},\"memory_MB\":{}}}\n",
             all ? size : training::fitting_micro_batch(settings, plan, objective, self, bytes), bytes / 1'000'000);
}

/// The only replica, which is told when backward is over.
class Alone : public distributed::SoloCollective {
 public:
  using SoloCollective::SoloCollective;
  void finish_sums() override { backward_end = now(); }
  double backward_end = 0;
};

/// Bytes of the gradients that are final only when backward is over: the embeddings, used first in a forward pass.
std::size_t late_bytes(const nn::ParameterSet& parameters) {
  Dim end = 0;
  for (const auto& segment : parameters.segments())
    if (segment.name.starts_with("bert.embeddings.")) end = std::max(end, segment.begin + segment.count());
  return static_cast<std::size_t>(end) * size_of(parameters.gradients().dtype());
}

/// The parts of a step of a replica that does not wait for others.
void alone(const Options& options) {
  const std::unique_ptr<Backend> backend = open_cpu({.threads = options.settings.threads.value_or(1)});
  auto collective = std::make_unique<Alone>(*backend);
  const Alone& watch = *collective;
  const distributed::Replica self(*backend, std::move(collective));
  Training training(options, self);
  std::vector<double> forward, backward, update, steps;
  for (const double end = now() + options.seconds; steps.size() < 6 || now() < end;) {
    const double begin = now();
    steps.push_back(training.step());
    forward.push_back(training.objective().forward_end - begin);
    backward.push_back(watch.backward_end - training.objective().forward_end);
    update.push_back(begin + steps.back() - watch.backward_end);
  }
  for (auto* const part : {&forward, &backward, &update, &steps}) part->erase(part->begin(), part->begin() + 2);
  fmt::print(
      "{{\"step_s\":{:.5f},\"forward_s\":{:.5f},\"backward_s\":{:.5f},\"update_s\":{:.5f},\"gradient_bytes\":{},"
      "\"late_bytes\":{}}}\n",
      median(steps), median(forward), median(backward), median(update), training.parameters().gradients().bytes(),
      late_bytes(training.parameters()));
}

/// The sum of one addend of each replica, with the processor's time that this process spends on it, and a copy of as
/// many bytes as that must read and write: every replica's addend is read and overwritten.
void sum(const Options& options, const distributed::Replica& self) {
  const Tensor x = ops::full({options.elements}, 1, DType::f32, self.backend());
  const Tensor half = ops::full({options.elements}, 1, DType::f32, self.backend());
  std::vector<double> sums, processor, copies;
  for (const double end = now() + options.seconds; sums.size() < 4 || goes_on(self, end);) {
    ops::fill(x, 1e-3);
    self.collective().barrier();
    const double begin = now(), processor_begin = processor_seconds();
    const distributed::Addend mine{.first = self.rank(), .count = 1, .values = x};
    self.collective().all_reduce_sum({&mine, 1}, self.size(), x);
    sums.push_back(now() - begin);
    processor.push_back(processor_seconds() - processor_begin);
    self.collective().barrier();
    const double copy = now();
    self.backend().kernels()->cast(x, half);  // reads and writes the addend's bytes, as all do at the same time
    self.collective().barrier();
    copies.push_back(now() - copy);
  }
  if (!self.first()) return;
  const double bytes = 2.0 * static_cast<double>(x.bytes()) * self.size();
  fmt::print(
      "{{\"replicas\":{},\"bytes\":{},\"sum_s\":{:.6f},\"processor_s\":{:.6f},\"copy_s\":{:.6f},\"sum_GB_s\":{:.2f},"
      "\"ratio\":{:.3f}}}\n",
      self.size(), x.bytes(), median(sums), median(processor), median(copies), bytes / median(sums) / 1e9,
      median(sums) / median(copies));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  options.settings.micro_batch_size = 16;
  CLI::App *training_steps, *sums, *one_alone, *fitting;
  const auto add_flags = [&](CLI::App& app) {
    app.require_subcommand(1);
    training_steps = app.add_subcommand("train", "whole steps");
    sums = app.add_subcommand("sum", "the sum of gradients alone");
    one_alone = app.add_subcommand("alone", "the parts of a step of one replica that does not wait for others");
    fitting = app.add_subcommand("fits", "the largest micro-batch that fits, from the plan");
    fitting->add_option("--memory", options.memory, "GB of each replica (default: what there is)");
    for (CLI::App* const each : {training_steps, one_alone, fitting}) {
      each->add_option("--model", options.model, "tiny, mini, small, medium, base or large");
      each->add_option("--precision", options.precision, "f32, bf16 or f16");
      each->add_option("--micro-batch", options.settings.micro_batch_size, "examples computed at once");
      each->add_option("--micro-batches", options.micro_batches, "in a step, over all replicas");
      each->add_option("--length", options.length, "tokens of an example");
    }
    training_steps->add_option("--sums", options.sums, "of gradients: during backward, or at its end")
        ->check(CLI::IsMember({"backward", "end"}));
    training_steps->add_option("--profile", options.settings.profile, "anything: print a table per op");
    sums->add_option("--elements", options.elements, "of the gradients");
    one_alone->add_option("--threads", options.settings.threads, "of the process");
    one_alone->add_option("--seconds", options.seconds, "to measure");
    for (CLI::App* const each : {training_steps, sums, fitting}) {
      each->add_option("--replicas", options.settings.replicas, "in each process");
      each->add_option("--threads", options.settings.threads, "of each process");
      each->add_option("--device", options.settings.device, "as of pretrain");
      each->add_option("--seconds", options.seconds, "to measure");
    }
  };
  return cli::run_main("Times training on replicas.", argc, argv, add_flags, [&] {
    if (one_alone->parsed()) return alone(options);
    distributed::with_processes({.timeout = 60}, [&](distributed::Collective* processes) {
      training::open_replicas(options.settings, processes).run([&](const distributed::Replica& self) {
        return training_steps->parsed() ? train(options, self)
               : fitting->parsed()      ? fits(options, self)
                                        : sum(options, self);
      });
    });
  });
}
