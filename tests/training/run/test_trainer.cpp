// What a run does around its steps: before the first one, between them, and where one fails.
#include "training/run/trainer.h"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "nn/tensor_file.h"
#include "optim/schedule.h"
#include "support/event_file.h"
#include "support/points.h"
#include "support/refusal.h"
#include "tensor/backends.h"
#include "tensor/dry_run.h"
#include "training/run/run_training.h"

using namespace bertrand;
using namespace bertrand::training;
using support::Points;
using support::PointsRun;
using support::WatchedPoints;
namespace fs = std::filesystem;

namespace {

/// With files beside the weights that no disk has room for.
struct HugePoints : Points {
  using Points::Points;
  std::size_t bytes_beside_weights() const override { return std::size_t{1} << 62; }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t) const override {
    return std::make_unique<HugePoints>(self);
  }
};

/// Whose evaluation no memory has room for, as the plan finds out.
struct HungryPoints : Points {
  using Points::Points;
  bool planned = false;
  Metrics evaluate() override {
    if (planned) ops::full({Dim{1} << 50}, 1, DType::f32, backend_);
    return {};
  }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t) const override {
    auto largest = std::make_unique<HungryPoints>(self);
    largest->planned = true;
    return largest;
  }
};

/// Keeps what it is told of the steps.
struct AnnouncedPoints : Points {
  using Points::Points;
  inline static std::vector<StepExamples> announced, begun;
  void read_ahead(const StepExamples& step, const distributed::Share&) override { announced.push_back(step); }
  std::int64_t begin_step(const StepExamples& step, const distributed::Share& share) override {
    begun.push_back(step);
    return Points::begin_step(step, share);
  }
};

/// A model of two parts, the lower of which has a name.
struct PartedPoints : Points {
  using Points::Points;
  std::vector<nn::Part> parts() override { return {{.name = "hidden", .prefix = "hidden.", .below = 1}}; }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t) const override {
    return std::make_unique<PartedPoints>(self);
  }
};

/// Evaluates, and no figure says which model is better.
struct EvaluatedPoints : Points {
  using Points::Points;
  Metrics evaluate() override { return {{"eval_figure", 1}}; }
};

/// Whose evaluation finds its data no more.
struct UnreadablePoints : Points {
  using Points::Points;
  Metrics evaluate() override { fail(Failure::io, "the data of the evaluation is gone"); }
};

/// Keeps what is really computed, that is, not for a plan alone.
struct CountedPoints : Points {
  using Points::Points;
  inline static std::vector<std::vector<std::int64_t>> steps;
  inline static int evaluations = 0;
  bool computes() const { return dynamic_cast<DryRun*>(&backend_) == nullptr; }
  std::int64_t begin_step(const StepExamples& step, const distributed::Share& share) override {
    if (computes()) steps.push_back(step.numbers);
    return Points::begin_step(step, share);
  }
  Metrics evaluate() override {
    if (computes()) ++evaluations;
    return {};
  }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t) const override {
    return std::make_unique<CountedPoints>(self);
  }
};

/// Keeps the weights that each replica has before each step.
struct RecordedPoints : Points {
  explicit RecordedPoints(const distributed::Replica& self) : Points(self), rank(self.rank()) {}
  const int rank;
  inline static std::mutex mutex;
  inline static std::map<int, std::vector<std::vector<float>>> weights;
  std::int64_t begin_step(const StepExamples& step, const distributed::Share& share) override {
    std::vector<float> all;
    for (const auto& [path, parameter] : model().parameters())
      for (const float value : ops::to_host<float>(parameter->value())) all.push_back(value);
    const std::lock_guard lock(mutex);
    weights[rank].push_back(std::move(all));
    return Points::begin_step(step, share);
  }
};

}  // namespace

TEST_CASE("a run whose checkpoint the disk has no room for ends before its first step, a finished one needs none") {
  const PointsRun run;
  const auto refused = [](const Settings& settings) {
    return !support::refusal(Failure::io, [&] { PointsRun::train<HugePoints>(settings); }).empty();
  };
  Settings settings = run.settings("run");
  CHECK(refused(settings));
  settings.dry_run = true;
  CHECK(refused(settings));
  CHECK_FALSE(fs::exists(run.directory / "run"));
  settings.output.clear();  // nothing is to be saved anywhere
  CHECK_FALSE(refused(settings));

  settings = run.settings("run");
  PointsRun::train(settings);
  settings.resume = true;
  CHECK_FALSE(refused(settings));
}

TEST_CASE("a plan that does not fit into memory can be looked at and is not trained") {
  const PointsRun run;
  Settings settings = run.settings("run");
  const auto refused = [&] {
    return !support::refusal(Failure::memory, [&] { PointsRun::train<HungryPoints>(settings); }).empty();
  };
  CHECK(refused());
  CHECK_FALSE(fs::exists(run.directory / "run"));
  settings.plan_only = true;
  CHECK_FALSE(refused());
}

TEST_CASE("memory that runs out in a step is reported with the step and with a micro-batch that would fit") {
  const PointsRun run;
  WatchedPoints::at_step_15 = [] { fail(Failure::memory, "no memory is left"); };
  const std::string memory =
      support::refusal(Failure::memory, [&] { PointsRun::train<WatchedPoints>(run.settings("memory")); });
  CHECK(memory.starts_with("step 15: no memory is left"));
  CHECK(memory.find("--micro-batch-size 3") != std::string::npos);
  WatchedPoints::at_step_15 = [] { fail(Failure::io, "the data is gone"); };
  CHECK(support::refusal(Failure::io, [&] { PointsRun::train<WatchedPoints>(run.settings("other")); }) ==
        "the data is gone");
}

TEST_CASE("an evaluation that fails ends the run") {
  const PointsRun run;
  CHECK(support::refusal(Failure::io, [&] { PointsRun::train<UnreadablePoints>(run.settings("run")); }) ==
        "the data of the evaluation is gone");
}

TEST_CASE("a failure of the others is reported with the step and the last checkpoint, also of a resumed run") {
  const PointsRun run;
  Settings settings = run.settings("run");
  WatchedPoints::at_step_15 = [] { fail(Failure::distributed, "the cable is cut"); };
  const auto reported = [&] {
    return support::refusal(Failure::distributed, [&] { PointsRun::train<WatchedPoints>(settings); });
  };
  CHECK(reported() == "step 15: the cable is cut; last checkpoint: none");
  settings.save_every = 10;
  settings.overwrite = true;
  const std::string checkpoint = run.directory / "run/checkpoint-10";
  CHECK(reported() == "step 15: the cable is cut; last checkpoint: " + checkpoint);
  settings.save_every = 1000;
  settings.overwrite = false;
  settings.resume = true;
  CHECK(reported() == "step 25: the cable is cut; last checkpoint: " + checkpoint);
}

TEST_CASE("each step but the first is announced while the one before is begun, and none beyond the last") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.epochs = 2;
  AnnouncedPoints::announced.clear();
  AnnouncedPoints::begun.clear();
  PointsRun::train<AnnouncedPoints>(settings);
  REQUIRE(AnnouncedPoints::begun.size() == 8);
  CHECK((AnnouncedPoints::announced ==
         std::vector<StepExamples>(AnnouncedPoints::begun.begin() + 1, AnnouncedPoints::begun.end())));
}

TEST_CASE("on a CPU each step is in the log before the next one begins") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.log_every = 1;
  std::int64_t logged = 0;
  WatchedPoints::at_step_15 = [&] { logged = run.metrics("run").back().at("step"); };
  PointsRun::train<WatchedPoints>(settings);
  CHECK(logged == 14);
}

TEST_CASE("of a step that a GPU may still be computing the losses are known before it is evaluated or saved") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.device = "emulated-cuda:0";
  settings.steps = 3;
  settings.eval_every = settings.log_every = 1;
  PointsRun::train<EvaluatedPoints>(settings);
  std::vector<std::pair<int, bool>> lines;
  for (const auto& line : run.metrics("run")) lines.emplace_back(line.at("step").get<int>(), line.contains("loss"));
  CHECK((lines ==
         std::vector<std::pair<int, bool>>{{1, true}, {1, false}, {2, true}, {2, false}, {3, true}, {3, false}}));

  settings.output = run.directory / "whole";
  settings.eval_every.reset();
  settings.log_every = 2;
  settings.save_every = 1;
  PointsRun::train(settings);
  fs::copy(run.directory / "whole", run.directory / "again", fs::copy_options::recursive);
  for (const char* gone : {"model.safetensors", "checkpoint-2", "checkpoint-3"})
    fs::remove_all(run.directory / "again" / gone);
  settings.output = run.directory / "again";
  settings.resume = true;
  PointsRun::train(settings);
  CHECK((run.metrics("again") == run.metrics("whole")));  // the line of step 2 is of both its steps
}

TEST_CASE("each step has the rate that its schedule gives for the steps before it") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.steps = 10;
  settings.log_every = 1;
  settings.schedule.schedule = optim::Schedule::polynomial;
  settings.warmup_ratio = 0.25;  // which is no whole number of steps
  PointsRun::train(settings);
  optim::ScheduleOptions expected = settings.schedule;
  expected.total_steps = 10;
  expected.warmup_share = 0.25;
  const auto lines = run.metrics("run");
  REQUIRE(lines.size() == 10);
  for (std::int64_t done = 0; done < 10; ++done)
    CHECK(lines[static_cast<std::size_t>(done)].at("learning_rate") == optim::learning_rate(expected, done));
}

TEST_CASE("the loss in the log is the mean of those since the line before") {
  const PointsRun run;
  Settings each = run.settings("each"), some = run.settings("some");
  each.steps = some.steps = 7;
  each.log_every = 1;
  some.log_every = 3;
  PointsRun::train(each);
  PointsRun::train(some);
  const auto losses = run.metrics("each"), means = run.metrics("some");
  REQUIRE(losses.size() == 7);
  REQUIRE(means.size() == 3);  // after steps 3, 6 and 7
  const auto loss = [](const nlohmann::json& line) { return line.at("loss").get<double>(); };
  CHECK(loss(means[0]) == doctest::Approx((loss(losses[0]) + loss(losses[1]) + loss(losses[2])) / 3).epsilon(1e-9));
  CHECK(loss(means[1]) == doctest::Approx((loss(losses[3]) + loss(losses[4]) + loss(losses[5])) / 3).epsilon(1e-9));
  CHECK(loss(means[2]) == loss(losses[6]));
}

TEST_CASE("after a save by the clock its minutes begin anew") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.save_every_minutes = 0.001;  // 60 ms, which no step but the 15th takes
  settings.keep = 99;
  WatchedPoints::at_step_15 = [] { std::this_thread::sleep_for(std::chrono::milliseconds(80)); };
  PointsRun::train<WatchedPoints>(settings);
  CHECK(fs::exists(run.directory / "run/checkpoint-15"));
  int later = 0;
  for (int step = 16; step < 40; ++step) later += fs::exists(run.directory / fmt::format("run/checkpoint-{}", step));
  CHECK(later < 24);
}

TEST_CASE("a dry run makes one whole step of the longest examples and one evaluation") {
  const PointsRun run;
  Settings settings = run.settings("");
  settings.output.clear();
  settings.dry_run = true;
  CountedPoints::steps.clear();
  CountedPoints::evaluations = 0;
  PointsRun::train<CountedPoints>(settings);
  CHECK(CountedPoints::evaluations == 1);
  REQUIRE(CountedPoints::steps.size() == 1);
  // Four micro-batches of 64 examples, which is what `largest` makes up for one.
  std::vector<std::int64_t> expected;
  for (std::int64_t i = 0; i < 4 * 64; ++i) expected.push_back(i % 64);
  CHECK(CountedPoints::steps[0] == expected);
}

TEST_CASE("TensorBoard gets a histogram of all weights and of the gradients that there are, as often as asked for") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.parts.freeze = "hidden";
  settings.histograms = 15;
  settings.replicas = 2;  // of which the first writes
  PointsRun::train<PartedPoints>(settings);
  std::map<std::string, std::vector<std::uint64_t>> steps;  // by what is shown
  for (const auto& entry : fs::directory_iterator(run.directory / "run")) {
    if (!entry.path().filename().string().starts_with("events.out.")) continue;
    for (const support::Message& event : support::events_of(entry.path()))
      if (event.contains(5))
        steps[support::text(support::inner(support::inner(event, 5), 1), 1)].push_back(support::number(event, 2));
  }
  const std::vector<std::uint64_t> asked{15, 30, 40};  // and after the last step
  for (const char* name : {"weights/hidden.weight", "weights/hidden.bias", "weights/output.weight",
                           "weights/output.bias", "gradients/output.weight", "gradients/output.bias"}) {
    CAPTURE(name);
    CHECK(steps[name] == asked);
  }
  CHECK_FALSE(steps.contains("gradients/hidden.weight"));
}

TEST_CASE("a batch is learnt by heart from the weights and moments of the run, with the same steps on any replicas") {
  const PointsRun run;
  const auto weights_on = [&](int replicas, const LoadMoments& moments) {
    Settings settings = run.settings("");
    settings.output.clear();
    settings.overfit_batch = true;
    settings.steps = 3;
    settings.replicas = replicas;
    complete(settings);
    RecordedPoints::weights.clear();
    const auto learn = [&] {  // three steps may be too few for that
      run_training(
          {.settings = settings,
           .program = "points",
           .read = [](distributed::Collective*) { return RunIdentity{}; },
           .make_objective = [](const distributed::Replica& self) { return std::make_unique<RecordedPoints>(self); },
           .initialize = [](nn::ParameterSet& parameters) { ops::fill(parameters.masters(), 0.25); },
           .moments = moments});
    };
    support::refusal(Failure::numerics, learn);
    return RecordedPoints::weights;
  };
  const LoadMoments ones = [](const nn::Moments& moments) {
    for (const nn::NamedTensor& moment : moments.first) ops::fill(moment.value, 1);
    return std::string("a file");
  };
  const auto alone = weights_on(1, ones), begun = weights_on(1, {}), shared = weights_on(2, ones);
  REQUIRE(alone.size() == 1);
  REQUIRE(alone.at(0).size() == 3);
  for (const float value : alone.at(0).at(0)) CHECK(value == 0.25f);
  CHECK(alone.at(0).at(1) != begun.at(0).at(1));
  REQUIRE(shared.size() == 2);
  for (const int rank : {0, 1}) CHECK((shared.at(rank) == alone.at(0)));
}

TEST_CASE("a checkpoint whose settings cannot be read gives way to the one before") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.save_every = 10;
  PointsRun::train(settings);
  const std::string model = run.file("run/model.safetensors");
  support::write_text(run.directory / "run/checkpoint-40/resume.json", "{");
  fs::remove(run.directory / "run/model.safetensors");
  settings.resume = true;
  PointsRun::train(settings);
  CHECK(run.file("run/model.safetensors") == model);
}

TEST_CASE("a plan that resumes a run of other settings is refused, and --overwrite replaces that run") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.epochs = 1;
  PointsRun::train(settings);
  settings.seed = 7;
  settings.resume = settings.plan_only = true;
  CHECK(support::refusal(Failure::usage, [&] { PointsRun::train(settings); }).find("--seed was 42, now 7") !=
        std::string::npos);
  settings.resume = settings.plan_only = false;
  settings.overwrite = true;
  const std::string before = run.file("run/model.safetensors");
  PointsRun::train(settings);
  CHECK(run.file("run/model.safetensors") != before);
}

TEST_CASE("a model file that lacks a tensor of the model is no model of a checkpoint") {
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  Points points(self);
  nn::ParameterSet parameters(points.model(), *backend);
  const support::TemporaryDirectory directory;
  io::FileWriter out(io::Files::system(), directory / "model.safetensors");
  nn::write_tensors(out, {{"hidden.weight", parameters.master(*parameters.find("hidden.weight"))}});
  out.finish();
  CHECK(support::refusal(Failure::model, [&] { points.load(directory / "", parameters); }) != "");
  points.save(io::Files::system(), directory / "", parameters);
  CHECK(support::refusal(Failure::model, [&] { points.load(directory / "", parameters); }) == "");
}
