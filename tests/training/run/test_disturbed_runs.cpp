// Runs that are disturbed where they have not saved yet, or where something is left to do, and then resumed.
#include <doctest/doctest.h>

#include "io/error.h"
#include "support/points.h"
#include "support/refusal.h"
#include "training/run/run_files.h"

using namespace bertrand;
using namespace bertrand::training;
using support::Points;
using support::PointsRun;
using support::WatchedPoints;
namespace fs = std::filesystem;

namespace {

/// Each evaluation is better than the one before. The disk goes away in one of them or in a step; 0: in none.
struct DisturbedPoints : Points {
  using Points::Points;
  inline static int failing_step = 0, failing_evaluation = 0;
  int steps = 0, evaluations = 0;
  std::int64_t begin_step(const StepExamples& step, const distributed::Share& share) override {
    if (++steps == failing_step) fail(Failure::io, "the disk is gone");
    return Points::begin_step(step, share);
  }
  Metrics evaluate() override {
    if (++evaluations == failing_evaluation) fail(Failure::io, "the disk is gone");
    return {{"eval_score", static_cast<double>(evaluations)}};
  }
  std::optional<double> score(const Metrics& metrics) const override { return metrics.front().value; }
};

/// What ends a run that is disturbed there, or "".
std::string end_of(const Settings& settings, int step, int evaluation) {
  DisturbedPoints::failing_step = step;
  DisturbedPoints::failing_evaluation = evaluation;
  return support::refusal(Failure::io, [&] { PointsRun::train<DisturbedPoints>(settings); });
}

}  // namespace

TEST_CASE(
    "a run that is disturbed twice before its first checkpoint begins anew, and keeps its model until it has another") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.steps = 4;
  settings.eval_every = 1;
  CHECK(end_of(settings, 0, 3) == "the disk is gone");
  const std::string model = run.file("run/model.safetensors");
  settings.resume = true;
  CHECK(end_of(settings, 1, 0) == "the disk is gone");
  CHECK(run.file("run/metrics.jsonl").empty());
  CHECK(run.file("run/model.safetensors") == model);
  CHECK(end_of(settings, 0, 0) == "");
  CHECK(nlohmann::json::parse(run.file("run/eval_results.json")).at("global_step") == 4);

  // It has ended: without its checkpoint it is no longer begun anew.
  for (const char* const gone : {"run/checkpoint-4", "run/eval_results.json", "run/eval_results.txt"})
    fs::remove_all(run.directory / gone);
  CHECK(support::refusal(Failure::usage, [&] {
          PointsRun::train<DisturbedPoints>(settings);
        }).find("expected a checkpoint to go on from, got none beside model.safetensors") != std::string::npos);
}

TEST_CASE("a run that keeps its model alone and is disturbed before it says that it has ended begins anew") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.save_model_only = true;
  const fs::path ended = run.directory / "run/ended.json";
  WatchedPoints::at_step_15 = [&] { fs::create_directory(ended); };  // in the place of the file
  CHECK(support::refusal(Failure::io, [&] { PointsRun::train<WatchedPoints>(settings); }) != "");
  fs::remove(ended);
  const std::string model = run.file("run/model.safetensors");
  fs::create_directory(run.directory / "run/model.tmp-1");
  settings.resume = true;
  PointsRun::train(settings);
  CHECK(run.file("run/model.safetensors") == model);
  CHECK(fs::is_regular_file(ended));
  CHECK_FALSE(fs::exists(run.directory / "run/model.tmp-1"));
}

TEST_CASE("what a run left half-written stays if it does not go on: it may be the only copy") {
  const PointsRun run;
  Settings settings = run.settings("run");
  PointsRun::train(settings);
  const fs::path left = run.directory / "run/model.tmp-1";
  fs::rename(run.directory / "run/checkpoint-40", left);
  settings.resume = true;
  CHECK(support::refusal(Failure::usage, [&] { PointsRun::train(settings); }) != "");
  CHECK(fs::exists(left / "model.safetensors"));
}

TEST_CASE("a checkpoint whose damage looks like another setting gives way to the one before") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.save_every = 10;
  PointsRun::train(settings);
  const std::string model = run.file("run/model.safetensors"), seed = R"("--seed": "42")";
  const fs::path damaged = run.directory / "run/checkpoint-40" / kStateFile;
  std::string state = support::read_text(damaged);
  REQUIRE(state.find(seed) != std::string::npos);
  support::write_text(damaged, state.replace(state.find(seed), seed.size(), R"("--seed": "43")"));
  settings.resume = true;
  PointsRun::train(settings);
  CHECK(run.file("run/model.safetensors") == model);
}

TEST_CASE("a run that is resumed at its end keeps as many checkpoints as it is told") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.save_every = 10;
  PointsRun::train(settings);
  settings.resume = true;
  settings.keep = 2;  // as if it had been killed before it removed the third one
  PointsRun::train(settings);
  CHECK_FALSE(fs::exists(run.directory / "run/checkpoint-20"));
  for (const char* const kept : {"run/checkpoint-30", "run/checkpoint-40"}) CHECK(fs::exists(run.directory / kept));
}
