// When an older checkpoint may go, seen by the first of several replicas.
#include "training/run/save_and_resume.h"

#include <doctest/doctest.h>

#include <limits>

#include "support/faulty_files.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/small_pretraining.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::training;
namespace fs = std::filesystem;

namespace {

/// The first of two replicas, whose cable is cut in barrier number `cut` from now on (from 1; 0: never).
class CutInBarrier : public distributed::SoloCollective {
 public:
  CutInBarrier(Backend& backend, int& cut) : SoloCollective(backend), cut_(cut) {}
  void barrier() override {
    if (cut_ > 0 && --cut_ == 0) fail(Failure::distributed, "process 1 did not come within 2 seconds");
  }

 private:
  int& cut_;
};

}  // namespace

TEST_CASE("a save removes the checkpoint before only when all replicas know of the new one") {
  const auto backend = open_cpu({.threads = 1});
  int cut = 0;
  const distributed::Replica self(*backend, std::make_unique<CutInBarrier>(*backend, cut));
  support::SmallPretraining objective(support::kSmallPretraining, self);
  nn::ParameterSet parameters(objective.model(), *backend, {});
  optim::Optimizer optimizer(parameters, {});
  Settings settings = pretraining_defaults();
  const support::TemporaryDirectory directory;
  settings.output = directory / "run";
  settings.keep = 1;
  fs::create_directories(settings.output);
  const Plan plan;
  const Conditions conditions;
  RunLog log(settings, plan, self);
  SaveAndResume saves({settings, conditions, {objective, parameters, optimizer}, self, log, io::Files::system()});
  RunState state;
  int named = 0;
  const auto save = [&](std::int64_t step) {
    state.steps_done = step;
    saves.save(state, [&] { ++named; });
  };
  const auto there = [&](int step) { return fs::exists(settings.output / ("checkpoint-" + std::to_string(step))); };

  save(1);
  // In the first barrier another replica may not know of the new checkpoint. In the second one it may not know that all
  // others know: it still names the checkpoint before if the end of the first barrier never reached it.
  for (const int barrier : {1, 2}) {
    CAPTURE(barrier);
    cut = barrier;
    CHECK_THROWS_AS(save(1 + barrier), Error);
    CHECK(there(1));
    CHECK(there(1 + barrier));
    CHECK(saves.saved_step() == 1 + barrier);  // which this replica names, as it is whole
  }
  cut = 0;
  save(4);
  CHECK_FALSE(there(1));
  CHECK(there(4));
  CHECK(named > 0);
  saves.replace_checkpoints(state);
  CHECK_FALSE(there(4));
  CHECK(saves.last_checkpoint() == "none");
}

namespace {

/// A replica that saves, of rank `rank` of two that never wait for each other.
struct Saving {
  struct Alone : distributed::SoloCollective {
    Alone(Backend& backend, int own) : SoloCollective(backend), rank_(own) {}
    int rank() const override { return rank_; }
    int size() const override { return 2; }
    int rank_;
  };
  support::TemporaryDirectory directory;
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  distributed::Replica self;
  support::SmallPretraining objective{support::kSmallPretraining, self};
  nn::ParameterSet parameters{objective.model(), *backend, {}};
  optim::Optimizer optimizer{parameters, {}};
  Settings settings = pretraining_defaults();
  const Plan plan;
  const Conditions conditions;
  RunLog log{settings, plan, self};
  RunState state;

  explicit Saving(int rank) : self(*backend, std::make_unique<Alone>(*backend, rank)) {
    settings.output = directory / "";
  }
  SaveAndResume saves(io::Files& files = io::Files::system()) {
    return SaveAndResume({settings, conditions, training(), self, log, files});
  }
  Training training() { return {objective, parameters, optimizer}; }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory / "")) names.push_back(entry.path().filename());
    return names;
  }
};

}  // namespace

TEST_CASE("another replica than the first writes nothing and names the new checkpoint when all have it") {
  Saving second(1);
  SaveAndResume saves = second.saves();
  second.state.steps_done = 3;
  int named = 0;
  saves.save(second.state, [&] { ++named; });
  CHECK(named == 1);
  CHECK(saves.saved_step() == 3);
  CHECK(second.names().empty());
}

TEST_CASE("weights that are not finite are not saved and the checkpoint before stays") {
  Saving first(0);
  SaveAndResume saves = first.saves();
  first.state.steps_done = 1;
  saves.save(first.state, [] {});
  ops::fill(first.parameters.values(), std::numeric_limits<double>::quiet_NaN());
  first.state.steps_done = 2;
  const std::string line = support::refusal(Failure::numerics, [&] { saves.save(first.state, [] {}); });
  CHECK(line.ends_with((first.directory / "checkpoint-1").string()));
  CHECK(first.names() == std::vector<std::string>{"checkpoint-1"});
}

TEST_CASE(
    "when a save has returned the checkpoint of a run outlives a power failure, and took no more room than was "
    "planned") {
  Saving first(0);
  support::RecordingFiles files(first.directory / "");
  SaveAndResume saves = first.saves(files);
  first.state.steps_done = 1;
  saves.save(first.state, [] {});
  for (const support::Lost lost : {support::Lost::data, support::Lost::everything}) {
    const support::TemporaryDirectory disk;
    files.restore(files.calls(), lost, disk / "");
    CHECK(verify_checkpoint(disk / "checkpoint-1") == "");
  }
  std::size_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(first.directory / "checkpoint-1")) bytes += entry.file_size();
  CHECK(bytes <= checkpoint_bytes(first.training()));
}

TEST_CASE(
    "a best model that was lost is published again from its own checkpoint, and the run goes on from the newest") {
  Saving first(0);
  first.settings.keep = 2;
  for (const double weight : {0.25, 0.5}) {
    ops::fill(first.parameters.values(), weight);
    ++first.state.steps_done;
    first.saves().save(first.state, [] {});
    first.state.best = {.score = 0.5, .step = 1, .crc32c = 4711};
  }
  REQUIRE(first.saves().newest_state(10));
  const auto weights = [&](const char* directory) {
    return support::read_text(first.directory / directory / "model.safetensors");
  };
  CHECK(weights("") == weights("checkpoint-1"));
  CHECK(weights("") != weights("checkpoint-2"));
  for (const double weight : ops::to_host<double>(first.parameters.values())) CHECK(weight == 0.5);
}

TEST_CASE("where a best model is published again what was written about an evaluation goes, and nothing else") {
  Saving first(0);
  first.state = {.steps_done = 1, .best = {.score = 0.5, .step = 1, .crc32c = 4711}};
  first.saves().save(first.state, [] {});
  for (const char* const name : {"eval_rows.jsonl", "predictions.tsv"})
    support::write_text(first.directory / name, "of a later model");
  SaveAndResume saves({first.settings,
                       first.conditions,
                       first.training(),
                       first.self,
                       first.log,
                       io::Files::system(),
                       {"eval_rows.jsonl"}});
  REQUIRE(saves.newest_state(1));  // the run is over: there is no later model
  CHECK(fs::exists(first.directory / "eval_rows.jsonl"));
  support::write_text(first.directory / "model.safetensors", "other weights");
  std::optional<RunState> found = saves.newest_state(10);
  REQUIRE(found);
  CHECK_FALSE(fs::exists(first.directory / "eval_rows.jsonl"));
  CHECK(fs::exists(first.directory / "predictions.tsv"));
  support::write_text(first.directory / "eval_rows.jsonl", "of the best model");
  saves.publish_result(*found);
  CHECK(fs::exists(first.directory / "eval_rows.jsonl"));
}

TEST_CASE("a run whose best model was taken away meanwhile publishes it again at the end, or says that it cannot") {
  Saving first(0);
  first.settings.keep = 2;
  SaveAndResume saves = first.saves();
  const fs::path published = first.directory / "model.safetensors";
  first.state.best.score = 0.5;
  for (const std::int64_t step : {1, 2}) {
    first.state.steps_done = step;
    saves.save(first.state, [] {});
    if (step > 1) continue;
    first.state.best.step = step;
    saves.publish(first.state.best);
  }
  const std::string best = support::read_text(published);
  fs::remove(published);
  saves.publish_result(first.state);
  CHECK(support::read_text(published) == best);

  support::write_text(published, "other weights");
  fs::remove_all(first.directory / "checkpoint-1");
  CHECK(support::refusal(Failure::model, [&] { saves.publish_result(first.state); }) ==
        published.string() + ": expected the best model, as it was after step 1, got another or a damaged one; hint: " +
            (first.directory / "checkpoint-2").string() + " holds the last one");
}

TEST_CASE("a resumed run keeps the checksum of the best model that it published again") {
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  support::SmallPretraining objective(support::kSmallPretraining, self);
  nn::ParameterSet parameters(objective.model(), *backend, {});
  optim::Optimizer optimizer(parameters, {});
  Settings settings = pretraining_defaults();
  const support::TemporaryDirectory directory;
  settings.output = directory / "run";
  fs::create_directories(settings.output);
  const Plan plan;
  const Conditions conditions;
  RunLog log(settings, plan, self);
  const SaveAndResume::Parts parts{settings, conditions, {objective, parameters, optimizer},
                                   self,     log,        io::Files::system()};
  // Another build wrote the file of the best model, which has been lost since: this build's file has other bytes.
  RunState state{.steps_done = 1, .best = {.score = 0.5, .step = 1, .crc32c = 4711}};
  SaveAndResume(parts).save(state, [] {});

  for (const int resumed : {1, 2}) {
    CAPTURE(resumed);
    SaveAndResume saves(parts);
    std::optional<RunState> found = saves.newest_state(10);
    REQUIRE(found);
    CHECK(found->best.step == 1);
    CHECK(found->best.crc32c == InputFile::of(settings.output / "model.safetensors").crc32c);
    found->steps_done = 1 + resumed;
    saves.save(*found, [] {});
  }
}
