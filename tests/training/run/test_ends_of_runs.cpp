// What a run says where it does not come to its end, and what it leaves then.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "io/signals.h"
#include "support/event_file.h"
#include "support/points.h"
#include "support/refusal.h"
#include "support/terminal.h"
#include "tensor/backends.h"
#include "tensor/dry_run.h"
#include "training/run/run_log.h"

using namespace bertrand;
using namespace bertrand::training;
using support::Points;
using support::PointsRun;
using support::WatchedPoints;
namespace fs = std::filesystem;

namespace {

/// Whose loss is infinite from the 15th step on.
struct SpoiltPoints : Points {
  using Points::Points;
  int begun = 0;
  std::int64_t begin_step(const StepExamples& step, const distributed::Share& share) override {
    ++begun;
    return Points::begin_step(step, share);
  }
  std::vector<LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override {
    auto parts = Points::loss(first, count, key);
    if (begun >= 15) parts[0].value = scale(parts[0].value, std::numeric_limits<double>::infinity());
    return parts;
  }
};

/// Which no memory has room for, whatever the micro-batch, if it is planned when steps have been made.
struct GrownPoints : WatchedPoints {
  using WatchedPoints::WatchedPoints;
  inline static bool has_grown = false;
  Metrics evaluate() override {
    if (has_grown) ops::full({Dim{1} << 50}, 1, DType::f32, backend_);
    return {};
  }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t) const override {
    return std::make_unique<GrownPoints>(self);
  }
};

/// In bf16. Keeps the least and the largest weight before the first step, of all replicas together.
struct FirstWeights : Points {
  using Points::Points;
  inline static std::mutex mutex;
  inline static float least = 0, largest_one = 0;
  inline static int replicas = 0;
  bool begun = dynamic_cast<DryRun*>(&backend_) != nullptr;  // for a plan there are no weights
  std::int64_t begin_step(const StepExamples& step, const distributed::Share& share) override {
    const std::lock_guard lock(mutex);
    if (!std::exchange(begun, true)) {
      for (const auto& [path, parameter] : model().parameters())
        for (const float value : ops::to_host<float>(parameter->value())) {
          least = std::min(least, value);
          largest_one = std::max(largest_one, value);
        }
      ++replicas;
    }
    return Points::begin_step(step, share);
  }
  std::vector<LossPart> loss(std::int64_t, std::int64_t count, std::uint64_t) override {
    const auto filled = [&](double value) { return ops::full({count, 2}, value, DType::bf16, backend_); };
    const Variable y = static_cast<support::Classifier&>(model())(Variable(filled(1)));
    return {{"loss", mse(y, filled(0), static_cast<double>(count))}};
  }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t) const override {
    return std::make_unique<FirstWeights>(self);
  }
};

/// Whose loss is 0 from the beginning.
struct LearntPoints : Points {
  using Points::Points;
  inline static int steps = 0;
  std::vector<LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override {
    if (first == 0) ++steps;
    auto parts = Points::loss(first, count, key);
    parts[0].value = scale(parts[0].value, 0);
    return parts;
  }
};

/// What a run says that is sent SIGTERM while it loads its weights, in a process of its own.
std::string said_when_stopped_before_step_1(const PointsRun& run) {
  const pid_t child = ::fork();
  if (child == 0) {
    Settings settings = run.settings("run");
    complete(settings);
    try {
      run_training({.settings = settings,
                    .program = "points",
                    .read = [](distributed::Collective*) { return RunIdentity{}; },
                    .make_objective = [](const distributed::Replica& self) { return std::make_unique<Points>(self); },
                    .initialize = [](nn::ParameterSet&) { std::raise(SIGTERM); }});
    } catch (const Error& error) {
      support::write_text(run.directory / "said", error.what());
      ::_exit(static_cast<int>(error.failure()));
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 75);
  return run.file("said");
}

}  // namespace

TEST_CASE("a run that is stopped before its first step says so and leaves no checkpoint") {
  const PointsRun run;
  CHECK(said_when_stopped_before_step_1(run) == "stopped before step 1; hint: --resume goes on");
  CHECK(fs::exists(run.directory / "run/run_config.json"));
  CHECK_FALSE(fs::exists(run.directory / "run/checkpoint-0"));
}

TEST_CASE("what a run would start from is refused before there is memory for it, and not asked for by --resume") {
  const PointsRun run;
  Settings settings = run.settings("run");
  complete(settings);
  int asked = 0;
  const auto refusal = [&] {
    return support::refusal(Failure::model, [&] {
      run_training({.settings = settings,
                    .program = "points",
                    .read = [](distributed::Collective*) { return RunIdentity{}; },
                    .make_objective = [](const distributed::Replica& self) { return std::make_unique<Points>(self); },
                    .check_start =
                        [&](const nn::Module& network) {
                          ++asked;
                          CHECK_FALSE(static_cast<bool>(*network.parameters().front().second));
                          fail(Failure::model, "other weights");
                        },
                    .initialize = [](nn::ParameterSet&) { fail(Failure::model, "asked to load"); }});
    });
  };
  CHECK(refusal() == "other weights");
  settings.resume = true;  // where there is no checkpoint
  CHECK(refusal() == "asked to load");
  CHECK(asked == 1);
}

TEST_CASE("a failure of the others after the training is reported with what was done then") {
  const PointsRun run;
  const auto cut = [](const TrainedReplica&) { fail(Failure::distributed, "the cable is cut"); };
  CHECK(support::refusal(Failure::distributed, [&] { PointsRun::train(run.settings("run"), cut); }) ==
        "afterwards: the cable is cut; last checkpoint: " + (run.directory / "run/checkpoint-40").string());

  // Nor does a replica beside the first name a checkpoint that gave way to the model, now or under --resume.
  Settings alone = run.settings("alone");
  alone.save_model_only = true;
  alone.replicas = 2;
  const auto cut_second = [&](const TrainedReplica& trained) {
    if (!trained.self.first()) cut(trained);
  };
  for (const bool resume : {false, true}) {
    alone.resume = resume;
    CHECK(support::refusal(Failure::distributed, [&] { PointsRun::train(alone, cut_second); }) ==
          "afterwards: the cable is cut; last checkpoint: none");
  }
}

TEST_CASE("a loss that is not finite is reported with the last checkpoint if there is one") {
  const PointsRun run;
  Settings settings = run.settings("run");
  const auto ends_with = [&](const std::string& end) {
    const std::string line = support::refusal(Failure::numerics, [&] { PointsRun::train<SpoiltPoints>(settings); });
    CHECK_MESSAGE(line.starts_with("step 15: "), line);
    CHECK_MESSAGE(line.ends_with(end), line);
    return line.find("last checkpoint") != std::string::npos;
  };
  const std::string hint = "; hint: a lower --learning-rate or more --warmup-steps usually help";
  CHECK_FALSE(ends_with(hint));
  settings.save_every = 10;
  settings.overwrite = true;
  CHECK(ends_with("; last checkpoint: " + (run.directory / "run/checkpoint-10").string() + hint));
}

TEST_CASE("memory that runs out where no micro-batch would fit is reported so") {
  const PointsRun run;
  GrownPoints::has_grown = false;
  WatchedPoints::at_step_15 = [] {
    GrownPoints::has_grown = true;
    fail(Failure::memory, "no memory is left");
  };
  const std::string line =
      support::refusal(Failure::memory, [&] { PointsRun::train<GrownPoints>(run.settings("run")); });
  CHECK(line.starts_with("step 15: no memory is left; hint: no smaller --micro-batch-size would fit"));
}

TEST_CASE("all replicas begin with the weights that the first one loads, in half types too") {
  const PointsRun run;
  for (const bool is_rehearsal : {false, true}) {
    Settings settings = run.settings("run");
    settings.steps = 1;
    settings.replicas = 2;
    settings.precision = {DType::bf16};
    settings.overfit_batch = is_rehearsal;
    settings.overwrite = !is_rehearsal;
    if (is_rehearsal) settings.output.clear();
    complete(settings);
    FirstWeights::least = FirstWeights::largest_one = 0.25;
    FirstWeights::replicas = 0;
    const auto train = [&] {  // one step is too few to learn a batch
      run_training(
          {.settings = settings,
           .program = "points",
           .read = [](distributed::Collective*) { return RunIdentity{}; },
           .make_objective = [](const distributed::Replica& self) { return std::make_unique<FirstWeights>(self); },
           .initialize = [](nn::ParameterSet& parameters) { ops::fill(parameters.masters(), 0.25); }});
    };
    support::refusal(Failure::numerics, train);
    CHECK(FirstWeights::replicas == 2);
    CHECK(FirstWeights::least == 0.25f);
    CHECK(FirstWeights::largest_one == 0.25f);
  }
}

TEST_CASE("a batch whose loss is 0 is learnt by heart after one step") {
  const PointsRun run;
  Settings settings = run.settings("");
  settings.output.clear();
  settings.overfit_batch = true;
  LearntPoints::steps = 0;
  CHECK(support::refusal(Failure::numerics, [&] { PointsRun::train<LearntPoints>(settings); }) == "");
  CHECK(LearntPoints::steps == 1);
}

TEST_CASE("a report that cannot be made is warned of and ends nothing, with its reason or what makes it") {
  CHECK(support::on_standard_error([] { try_report("run", [] { fail(Failure::io, "the disk is full"); }); }) ==
        "warning: no report: the disk is full\n");
  const support::TemporaryDirectory directory;
  const pid_t child = ::fork();
  if (child == 0) {
    io::catch_stop_signals(io::OnStop::leave);
    std::raise(SIGTERM);
    support::write_text(directory / "said", support::on_standard_error(
                                                [] { try_report("run", [] { io::leave_if_requested("drawing"); }); }));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(support::read_text(directory / "said") == "warning: no report: interrupted; hint: report run makes it\n");
}

namespace {

/// A log of the first replica, and the parameters of its model.
struct Logged {
  support::TemporaryDirectory directory;
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  distributed::Replica self{*backend};
  Points objective{self};
  Settings settings = finetuning_defaults();
  const Plan plan;
  RunLog log{settings, plan, self};

  Logged() {
    settings.output = directory / "";
    settings.quiet = true;
    settings.log_every = 2;
    log.open({}, io::Files::system(), 0);
  }
};

}  // namespace

TEST_CASE("the time of steps that overlap counts once in the rates of a line") {
  Logged run;
  const auto begin = std::chrono::steady_clock::now();
  for (const std::int64_t step : {1, 2}) {  // the second is asked for before the first is computed
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    run.log.step({.examples = {.epoch = 0, .numbers = {1, 2, 3}}, .number = step, .begin = begin},
                 {.losses = {{"loss", 1}}}, false);
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  const auto lines = support::read_json_lines(run.directory / "metrics.jsonl");
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("examples_per_second").get<double>() >= 0.999 * 6 / time.count());
}

TEST_CASE("histograms of f64 show what f32 would round") {
  Logged run;
  nn::ParameterSet parameters(run.objective.model(), *run.backend, {.dtype = DType::f64});
  const double value = 1 + 0x1p-40;
  ops::fill(parameters.masters(), value);
  parameters.round_masters();
  run.log.histograms(1, parameters,
                     ops::full({parameters.masters().shape().elements()}, value, DType::f64, *run.backend));
  int shown = 0;
  for (const auto& entry : fs::directory_iterator(run.directory / "")) {
    if (!entry.path().filename().string().starts_with("events.out.")) continue;
    for (const support::Message& event : support::events_of(entry.path())) {
      if (!event.contains(5)) continue;
      const std::string rows = support::text(support::inner(support::inner(support::inner(event, 5), 1), 8), 4);
      double first_edge = 0;
      std::memcpy(&first_edge, rows.data(), sizeof first_edge);
      CHECK(first_edge == value);
      ++shown;
    }
  }
  CHECK(shown == 8);  // of four parameters the weights and the gradients
}
