// A run of a user's own module, which has nothing of BERT: trained, saved and resumed.
#include "training/run/run_training.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <limits>
#include <numeric>
#include <regex>
#include <thread>

#include "io/signals.h"
#include "support/epoch_numbers.h"
#include "support/points.h"
#include "support/refusal.h"
#include "tensor/backends.h"
#include "tensor/dry_run.h"
#include "training/run/data_order.h"
#include "training/run/run_config.h"

using namespace bertrand;
using namespace bertrand::training;
using support::Points;
using support::PointsRun;
using support::WatchedPoints;
namespace fs = std::filesystem;

namespace {

/// As text whose epochs take a second to count.
struct SlowPoints : Points {
  using Points::Points;
  std::int64_t examples(std::int64_t epoch) override {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return Points::examples(epoch);
  }
};

/// Is sent a signal in each step that is really computed.
struct StoppedPoints : Points {
  using Points::Points;
  std::int64_t begin_step(const StepExamples& step, const distributed::Share& share) override {
    if (!dynamic_cast<DryRun*>(&backend_)) std::raise(SIGTERM);
    return Points::begin_step(step, share);
  }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t) const override {
    return std::make_unique<StoppedPoints>(self);
  }
};

/// Its loss is not finite, and its examples cannot be read again.
struct SpoiltPoints : Points {
  using Points::Points;
  int begun = 0;
  std::int64_t begin_step(const StepExamples& step, const distributed::Share& share) override {
    if (++begun == 2) fail(Failure::input, "the table is gone");
    return Points::begin_step(step, share);
  }
  std::vector<LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override {
    auto parts = Points::loss(first, count, key);
    parts[0].value = scale(parts[0].value, std::numeric_limits<double>::infinity());
    return parts;
  }
};

}  // namespace

TEST_CASE("a step that fails for another reason than its numbers is not blamed on the learning rate") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.steps = 1;
  CHECK(support::refusal(Failure::input, [&] { PointsRun::train<SpoiltPoints>(settings); }) == "the table is gone");
}

TEST_CASE("a signal during the report ends the report alone, and one before it does not") {
  const PointsRun run;
  // The exit code of a process that trains and is sent a signal in a step or by its report.
  const auto code_of = [&](const std::string& output, bool during_training) {
    const pid_t child = ::fork();
    if (child > 0) {
      int status = 0;
      ::waitpid(child, &status, 0);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    Settings settings = run.settings(output);
    complete(settings);
    try {
      if (during_training) WatchedPoints::at_step_15 = [] { std::raise(SIGTERM); };
      else WatchedPoints::at_step_15 = [] {};
      run_training(
          {.settings = settings,
           .program = "points",
           .read = [](distributed::Collective*) { return RunIdentity{}; },
           .make_objective = [](const distributed::Replica& self) { return std::make_unique<WatchedPoints>(self); },
           .report =
               [&](io::Files&) {
                 if (!during_training) std::raise(SIGTERM);
                 io::leave_if_requested("drawing");
                 support::write_text(settings.output / "page", "whole");
               }});
    } catch (const Error& error) {
      ::_exit(static_cast<int>(error.failure()));
    }
    ::_exit(0);
  };
  CHECK(code_of("whole", false) == 0);
  CHECK(fs::exists(run.directory / "whole/model.safetensors"));
  CHECK_FALSE(fs::exists(run.directory / "whole/page"));
  CHECK(code_of("stopped", true) == 75);
  CHECK(fs::exists(run.directory / "stopped/page"));
}

TEST_CASE("a signal ends what stands in place of a run") {
  const PointsRun run;
  for (bool Settings::*rehearsal : {&Settings::dry_run, &Settings::overfit_batch}) {
    const pid_t child = ::fork();
    if (child == 0) {
      io::catch_stop_signals(io::OnStop::leave);
      Settings settings = run.settings("");
      settings.output.clear();
      settings.*rehearsal = true;
      try {
        PointsRun::train<StoppedPoints>(settings);
      } catch (const Error& error) {
        ::_exit(static_cast<int>(error.failure()));
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 75);
  }
}

TEST_CASE("a classifier without BERT is trained by run_training and its files are whole") {
  const PointsRun run;
  bool called = false;
  PointsRun::train(run.settings("run"), [&](const TrainedReplica& trained) {
    called = true;
    CHECK(trained.parameters.segments().size() == 4);
  });
  CHECK(called);
  const auto lines = support::read_json_lines(run.directory / "run/metrics.jsonl");
  REQUIRE(lines.size() == 4);
  CHECK(lines.back().at("step") == 40);
  CHECK(lines.back().at("epoch") == 10.0);
  CHECK(lines.back().at("loss") < lines.front().at("loss"));
  for (const auto& line : lines) {
    CHECK(line.at("examples_per_second") > 0);
    CHECK(line.at("tokens_per_second") == line.at("examples_per_second"));  // a token an example
  }
  CHECK(lines.back().at("seconds") > 0);
  CHECK(lines.back().at("seconds") >= lines.front().at("seconds"));
  const auto config = nlohmann::json::parse(run.file("run/run_config.json"));
  CHECK(config.at("program") == "points");
  CHECK(std::regex_match(config.at("started").get<std::string>(), std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)")));
  for (const char* name : {"run/model.safetensors", "run/checkpoint-40/MANIFEST.json"})
    CHECK(fs::exists(run.directory / name));
  CHECK_FALSE(fs::exists(run.directory / "run/.lock"));
}

TEST_CASE("a record says when its run began, though it is written later") {
  const support::TemporaryDirectory directory;
  const auto backend = open_cpu({.threads = 1});
  Settings settings;
  settings.output = directory / "";
  write_run_config(io::Files::system(), {"points", settings, nullptr, {}, distributed::Replica(*backend), 1});
  const auto record = nlohmann::json::parse(support::read_text(directory / "run_config.json"));
  CHECK(record.at("started") == "1970-01-01T00:00:01Z");
}

TEST_CASE("a run whose directory is moved away ends, and changes nothing in the run that took its name") {
  const PointsRun run;
  const fs::path path = run.directory / "run", moved = run.directory / "moved";
  Settings settings = run.settings("run");
  settings.save_every = 10;
  settings.keep = 1;
  std::map<std::string, std::string> other;
  const auto files_there = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(path))
      if (entry.is_regular_file()) files[entry.path()] = support::read_text(entry.path());
    return files;
  };
  WatchedPoints::at_step_15 = [&] {
    fs::rename(path, moved);
    Settings of_other = run.settings("run");
    of_other.epochs = 1;
    PointsRun::train(of_other);
    other = files_there();
  };
  CHECK(
      support::refusal(Failure::usage, [&] { PointsRun::train<WatchedPoints>(settings); }) ==
      path.string() +
          ": expected the directory and the .lock that this run began with, got none; hint: somebody moved or removed "
          "them: --resume, with --output as the directory is called now, goes on from the last checkpoint");
  CHECK(files_there() == other);
  CHECK(fs::exists(moved / "checkpoint-10/MANIFEST.json"));
}

TEST_CASE("a run whose directory is moved away leaves an empty one that took its name") {
  const PointsRun run;
  const fs::path path = run.directory / "run";
  Settings settings = run.settings("run");
  settings.save_every = 10;
  WatchedPoints::at_step_15 = [&] {
    fs::rename(path, run.directory / "moved");
    fs::create_directory(path);
  };
  CHECK(!support::refusal(Failure::usage, [&] { PointsRun::train<WatchedPoints>(settings); }).empty());
  CHECK(fs::exists(path));
}

TEST_CASE("a run does not go on from a state that no run saves") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.save_every = 10;
  settings.keep = 4;
  PointsRun::train(settings);
  const auto refusal = [&](const std::string& was, const std::string& is) {
    const fs::path from = run.directory / "run/checkpoint-20", to = run.directory / "forged";
    fs::remove_all(to);
    fs::create_directories(to);
    // Its checksums are right.
    CheckpointStore(to).save(20, 0, [&](const fs::path& staged) {
      for (const char* name : {"model.safetensors", "optimizer.safetensors", "points.txt"})
        if (fs::exists(from / name)) fs::copy_file(from / name, staged / name);
      std::string state = support::read_text(from / "resume.json");
      REQUIRE(state.find(was) != std::string::npos);
      support::write_text(staged / "resume.json", state.replace(state.find(was), was.size(), is));
      return TensorChecksums{};
    });
    Settings resumed = run.settings("forged");
    resumed.resume = true;
    const std::string file = (to / "checkpoint-20/resume.json").string() + ": ";
    const std::string error = support::refusal(Failure::model, [&] { PointsRun::train(resumed); });
    return error.starts_with(file) ? error.substr(file.size()) : error;
  };
  CHECK(refusal("\"step\": 20", "\"step\": 21") == "step: expected that of the directory's name, got 21");
  CHECK(refusal("\"step_in_epoch\": 0", "\"step_in_epoch\": 4") ==
        "checkpoint: step_in_epoch: expected less than the 4 steps of epoch 5, got 4");
  CHECK(refusal("\"scale\": ", "\"scale\": -").starts_with("loss_scale.scale: expected a number in [0.0009765625, "));
  CHECK(refusal("philox4x32-10", "mt19937") == "random_numbers: expected philox4x32-10, got mt19937");
  CHECK(refusal("\"step\": 20", "\"step\": 20") == "");
}

TEST_CASE("a profile lies beside what a run reads and replaces no file of the run") {
  const PointsRun run;
  fs::create_directories(run.directory / "data");
  Settings settings = run.settings("run");
  const auto refusal = [&](const std::string& profile) {
    settings.profile = run.directory / profile;
    return support::refusal(Failure::usage, [&] { PointsRun::train(settings, {}, {run.directory / "data"}); });
  };
  const std::string data = run.directory / "data";
  CHECK(refusal("data/trace.json") ==
        "--profile: expected a file beside what the run reads, got " + data + "/trace.json in " + data);
  for (const std::string name : {"run/metrics.jsonl", "run/points.txt", "run/run_config.json.tmp-17"})
    CHECK(refusal(name) == "--profile: expected a file that is not the run's, got " + (run.directory / name).string());
  CHECK_FALSE(fs::exists(run.directory / "run"));
  Settings other = run.settings("other");
  other.steps = 1;
  PointsRun::train(other);
  for (const std::string name : {"other/metrics.jsonl", "other/checkpoint-1/trace.json"}) CHECK(refusal(name) != "");
  CHECK_FALSE(fs::exists(run.directory / "run"));
  CHECK(refusal("run/trace.json") == "");
  CHECK(fs::exists(run.directory / "run/trace.json"));
}

TEST_CASE("a classifier without BERT resumed from a checkpoint ends with the same bits on any replicas") {
  const PointsRun run;
  Settings settings = run.settings("whole");
  settings.save_every = 13;  // between two lines of metrics
  PointsRun::train(settings);
  for (const int replicas : {1, 2, 3}) {
    CAPTURE(replicas);
    const fs::path copy = run.directory / "run";
    fs::remove_all(copy);
    fs::copy(run.directory / "whole", copy, fs::copy_options::recursive);
    for (const char* gone : {"model.safetensors", "checkpoint-39", "checkpoint-40"}) fs::remove_all(copy / gone);
    fs::create_directory(copy / "checkpoint-39.tmp-1");  // it was killed while it saved
    Settings resumed = settings;
    resumed.output = copy;
    resumed.resume = true;
    resumed.replicas = replicas;
    PointsRun::train(resumed);
    for (const std::string name : {"/model.safetensors", "/checkpoint-40/optimizer.safetensors"})
      CHECK(run.file("run" + name) == run.file("whole" + name));
    CHECK((run.metrics("run") == run.metrics("whole")));
    CHECK_FALSE(fs::exists(copy / "checkpoint-39.tmp-1"));
  }
}

TEST_CASE("a run that kept its model alone is resumed at its end, and makes no further steps") {
  const PointsRun run;
  Settings settings = run.settings("run");
  settings.save_model_only = true;
  settings.replicas = 2;
  PointsRun::train(settings);
  const std::string model = run.file("run/model.safetensors");
  const auto metrics = run.metrics("run");
  settings.resume = true;
  for (const int replicas : {2, 1}) {
    settings.replicas = replicas;
    bool called = false;
    PointsRun::train(settings, [&](const TrainedReplica& trained) {
      if (trained.self.first()) called = true;
    });
    CHECK(called);
    CHECK(run.file("run/model.safetensors") == model);
    CHECK(run.metrics("run") == metrics);
    CHECK_FALSE(fs::exists(run.directory / "run/checkpoint-40"));
  }
  const auto refused = [&](Failure failure, const std::string& expected) {
    const std::string line = support::refusal(failure, [&] { PointsRun::train(settings); });
    CHECK_MESSAGE(line.find(expected) != std::string::npos, line);
  };
  settings.epochs = 20;
  refused(Failure::usage, "expected a checkpoint to go on from, got none, as the run ended with --save-model-only");
  settings.epochs = 10;
  settings.seed = 7;
  refused(Failure::usage, "expected the settings and files of " + (run.directory / "run").string() + ", got others");
  settings.seed = run.settings("").seed;
  CHECK(run.file("run/model.safetensors") == model);
  for (const char* const other : {"another model", ""}) {
    fs::remove(run.directory / "run/model.safetensors");
    if (*other) support::write_text(run.directory / "run/model.safetensors", other);
    refused(Failure::model,
            "model.safetensors: expected the model that the run ended with, got another or none; hint: "
            "without its directory the run begins anew");
  }
}

TEST_CASE("a plan that takes longer than the collective timeout ends no run") {
  const PointsRun run;
  Settings settings = run.settings("planned");
  settings.device = "emulated-cuda:0,emulated-cuda:1";  // replicas of CPUs in one process wait without a limit
  settings.plan_only = true;
  settings.collective_timeout = 2;
  settings.epochs = 3;
  const auto begin = std::chrono::steady_clock::now();
  PointsRun::train<SlowPoints>(settings);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  CHECK(seconds.count() > settings.collective_timeout);
}

TEST_CASE(
    "an epoch's order holds every example once, follows from seed and epoch, and is the file's without shuffling") {
  Settings settings;
  settings.seed = 5;
  std::vector<std::int64_t> file_order(50);
  std::iota(file_order.begin(), file_order.end(), 0);
  const auto order = support::epoch_numbers(settings, 0, 50);
  CHECK(order != file_order);
  CHECK(order == support::epoch_numbers(settings, 0, 50));
  CHECK(order != support::epoch_numbers(settings, 1, 50));
  CHECK(std::is_permutation(order.begin(), order.end(), file_order.begin()));
  settings.seed = 6;
  CHECK(order != support::epoch_numbers(settings, 0, 50));
  settings.shuffle = false;
  CHECK(support::epoch_numbers(settings, 3, 50) == file_order);
}

TEST_CASE("the order of the data moves from step to step and from epoch to epoch") {
  const auto backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  Points points(self);
  Settings settings;
  settings.batch_size = 24;  // 64 examples: 24, 24, 16
  settings.shuffle = false;
  DataOrder order(settings, points);
  Position position;
  std::vector<std::size_t> sizes;
  std::vector<double> epochs;
  for (int step = 0; step < 4; ++step) {
    const StepExamples examples = order.at(position);
    sizes.push_back(examples.numbers.size());
    epochs.push_back(examples.epochs_after);
    position = order.after(position);
  }
  CHECK(sizes == std::vector<std::size_t>{24, 24, 16, 24});
  CHECK(epochs == std::vector<double>{1.0 / 3, 2.0 / 3, 1, 1 + 1.0 / 3});
  CHECK(position.epoch == 1);
  CHECK(order.at({.epoch = 0, .step = 1}).numbers.front() == 24);

  settings.batch_size = 21;  // the last of four steps has one example
  DataOrder with_rest(settings, points);
  CHECK(with_rest.at({.epoch = 0, .step = 3}).numbers == std::vector<std::int64_t>{63});
  CHECK(with_rest.after({.epoch = 0, .step = 3}).epoch == 1);
  CHECK(with_rest.epochs({.epoch = 1, .step = 2}) == 1.5);
}
