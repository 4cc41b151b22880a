// When a run evaluates, what it keeps of it, and when it ends because of it.
#include <doctest/doctest.h>

#include <atomic>
#include <limits>

#include "io/error.h"
#include "support/points.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::training;
using support::Points;
using support::PointsRun;
namespace fs = std::filesystem;

namespace {

/// Whose evaluations have these scores, one after the other.
struct ScoredPoints : Points {
  using Points::Points;
  inline static std::vector<double> scores;
  std::size_t evaluations = 0;
  inline static std::atomic<int> written{0};
  Metrics evaluate() override { return {{"eval_score", scores.at(evaluations++)}}; }
  void write_evaluation(io::Files&, const fs::path&) const override { ++written; }
  std::optional<double> score(const Metrics& metrics) const override { return metrics.front().value; }
};

/// Evaluates as they do, but no figure says which model is better.
struct UnscoredPoints : ScoredPoints {
  using ScoredPoints::ScoredPoints;
  std::optional<double> score(const Metrics&) const override { return std::nullopt; }
};

/// Whose second evaluation finds a number that is not finite.
struct SpoiledPoints : ScoredPoints {
  using ScoredPoints::ScoredPoints;
  Metrics evaluate() override {
    if (evaluations == 1) fail(Failure::numerics, "example 0: expected finite outputs, got nan; hint: as it is");
    return ScoredPoints::evaluate();
  }
};

/// Three steps, and an evaluation after each.
Settings three_steps(const PointsRun& run) {
  Settings settings = run.settings("run");
  settings.steps = 3;
  settings.eval_every = 1;
  return settings;
}

}  // namespace

TEST_CASE("the best score is the first of the highest ones, and one that is not a number is not in its way") {
  const PointsRun run;
  Settings settings = three_steps(run);
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto best_step = [&](std::vector<double> scores) {
    ScoredPoints::scores = std::move(scores);
    settings.overwrite = true;
    PointsRun::train<ScoredPoints>(settings);
    return nlohmann::json::parse(run.file("run/eval_results.json")).at("global_step").get<int>();
  };
  CHECK(best_step({0.5, 0.7, 0.6}) == 2);
  CHECK(best_step({0.7, 0.7, 0.6}) == 1);
  CHECK(best_step({kNone, 0.7, 0.6}) == 2);
  CHECK(best_step({0.5, kNone, 0.4}) == 1);
  CHECK(best_step({kNone, kNone, kNone}) == 3);  // the final model
  settings.patience = 2;
  CHECK(best_step({kNone, kNone, kNone}) == 2);
  settings.steps = 5;
  CHECK(best_step({0.5, 0.4, 0.6, 0.5, 0.7}) == 5);  // never two in a row without a better one
}

TEST_CASE("the state of a run keeps its best evaluation and counts those since") {
  const double none = std::numeric_limits<double>::quiet_NaN();
  RunState state;
  const auto note = [&](std::optional<double> score) {
    ++state.steps_done;
    return state.note_evaluation({{"eval_step", static_cast<double>(state.steps_done)}}, score);
  };
  CHECK_FALSE(note({}));  // nothing is scored: the last evaluation counts
  CHECK(state.evaluation.front().value == 1);
  CHECK_FALSE(note(none));
  CHECK(state.evaluations_since_best == 1);
  CHECK(note(0.5));
  CHECK_FALSE(note(0.5));
  CHECK_FALSE(note(none));
  CHECK(state.best.step == 3);
  CHECK(state.evaluation.front().value == 3);
  CHECK(state.gave_up(2));
  CHECK(note(0.6));
  CHECK(state.best.step == 6);
  CHECK_FALSE(state.gave_up(1));
}

TEST_CASE("the rows of a better evaluation are written by one replica alone") {
  const PointsRun run;
  Settings settings = three_steps(run);
  settings.replicas = 2;
  ScoredPoints::scores = {0.5, 0.7, 0.6};
  ScoredPoints::written = 0;
  PointsRun::train<ScoredPoints>(settings);
  CHECK(ScoredPoints::written == 2);
  int event_files = 0;
  for (const auto& entry : fs::directory_iterator(run.directory / "run"))
    event_files += entry.path().filename().string().starts_with("events.out.");
  CHECK(event_files == 1);
}

TEST_CASE("a run that is resumed at its end evaluates no more, and writes its results again if they are gone") {
  const PointsRun run;
  Settings settings = three_steps(run);
  ScoredPoints::scores = {0.5, 0.7, 0.6};
  PointsRun::train<ScoredPoints>(settings);
  const std::string results = run.file("run/eval_results.json");
  fs::remove(run.directory / "run/eval_results.json");
  settings.resume = true;
  ScoredPoints::scores.clear();
  PointsRun::train<ScoredPoints>(settings);
  CHECK(run.file("run/eval_results.json") == results);
}

TEST_CASE(
    "without a score a run trains to its end, whatever the patience, and its results are those of the last model") {
  const PointsRun run;
  Settings settings = three_steps(run);
  settings.patience = 1;
  ScoredPoints::scores = {0.7, 0.5, 0.6};
  PointsRun::train<UnscoredPoints>(settings);
  const auto results = nlohmann::json::parse(run.file("run/eval_results.json"));
  CHECK(results.at("global_step") == 3);
  CHECK(results.at("eval_score") == 0.6);
}

TEST_CASE("what a run leaves of its evaluations is that of the best model") {
  const PointsRun run;
  Settings settings = three_steps(run);
  ScoredPoints::scores = {0.5, 0.7, 0.6};
  PointsRun::train<ScoredPoints>(settings);
  CHECK(nlohmann::json::parse(run.file("run/eval_results.json")).at("eval_score") == 0.7);
}

TEST_CASE("a run that is told no interval evaluates at the end of each epoch and after its last step") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.steps = 6;  // of which four are an epoch
  ScoredPoints::scores = {0.5, 0.7};
  PointsRun::train<ScoredPoints>(settings);
  std::vector<std::pair<int, double>> evaluated;  // after which step, and how many epochs
  for (const auto& line : run.metrics("run"))
    if (line.contains("eval_score")) evaluated.emplace_back(line.at("step"), line.at("epoch"));
  CHECK(evaluated == std::vector<std::pair<int, double>>{{4, 1}, {6, 1.5}});
}

TEST_CASE("an evaluation of weights that are not finite says what helps a training") {
  const PointsRun run;
  Settings settings = three_steps(run);
  settings.save_every = 1;
  ScoredPoints::scores = {0.5};
  CHECK(support::refusal(Failure::numerics, [&] { PointsRun::train<SpoiledPoints>(settings); }) ==
        "evaluation after step 2: example 0: expected finite outputs, got nan; last checkpoint: " +
            (run.directory / "run/checkpoint-1").string() +
            "; hint: a lower --learning-rate or more --warmup-steps usually help");
}
