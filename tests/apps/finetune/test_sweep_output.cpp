// What a sweep says of its runs: plans, which is the best, and what several seeds say together.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "support/small_finetuning.h"
#include "training/run/run_directory.h"

using bertrand::training::ExistingRun;
using Held = bertrand::training::RunDirectory;
using support::Outcome;
using support::read_text;

TEST_CASE("of runs that are as good the one with the lowest loss is the best") {
  const support::SmallFinetuning setting(30);
  const auto ends_with = [&](const Outcome& outcome, const std::string& how, const std::string& run) {
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK_MESSAGE(outcome.out.ends_with(how + ": " + setting.at("run/" + run) + "\n"), outcome.out);
  };
  const auto sweep = [&](std::vector<std::string> values) {
    values.insert(values.begin(), {"--metric-for-best-model", "accuracy", "--overwrite", "--sweep"});
    return setting.train(values);
  };
  ends_with(sweep({"learning-rate=0,1e-5"}), ", as good as 1 other, with a lower loss", "learning-rate=1e-5");
  CHECK(setting.figure("run/learning-rate=1e-5", "eval_loss") < setting.figure("run/learning-rate=0", "eval_loss"));
  // Gradients that are not clipped have no different losses.
  ends_with(sweep({"clip-norm=1e5,1e6"}), ", as good as 1 other", "clip-norm=1e5");
}

TEST_CASE("a sweep over seeds has the mean and the deviation of each combination of the other values") {
  const support::SmallFinetuning setting(30);
  const Outcome outcome =
      setting.train({"--sweep", "seed=1,2,3", "learning-rate=0", "--metric-for-best-model", "loss"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  double sum = 0, squares = 0;
  for (const char* const seed : {"1", "2", "3"}) {
    const std::string run = fmt::format("run/seed={},learning-rate=0", seed);
    const double loss = setting.figure(run, "eval_loss");
    sum += loss;
    squares += loss * loss;
  }
  const std::string table = read_text(setting.at("run/sweep_seeds.tsv")),
                    head = "learning-rate\tn\tmean\tdeviation\n0\t3\t";
  CHECK(outcome.out.find("over the seeds, loss (the lowest):\n" + table) != std::string::npos);
  REQUIRE(table.starts_with(head));
  std::istringstream numbers(table.substr(head.size()));
  double mean = 0, deviation = 0;
  numbers >> mean >> deviation;
  CHECK(mean == doctest::Approx(sum / 3).scale(0).epsilon(1e-5));
  CHECK(deviation > 0);
  CHECK(deviation == doctest::Approx(std::sqrt((squares - sum * sum / 3) / 2)).scale(0).epsilon(1e-4));

  CHECK(setting
            .train(
                {"--sweep", "weight-decay=1e6", "seed=1,2", "--learning-rate", "0.02", "--epochs", "15", "--overwrite"})
            .code == 6);
  CHECK(read_text(setting.at("run/sweep_seeds.tsv")) == "weight-decay\tn\tmean\tdeviation\n1e6\t0\tfailed\t\n");
  support::write_text(setting.at("run/weight-decay=1e6,seed=2/notes"), "mine");
  REQUIRE(setting.train({"--sweep", "learning-rate=0", "--overwrite"}).code == 0);
  CHECK_FALSE(std::filesystem::exists(setting.at("run/sweep_seeds.tsv")));
  CHECK_FALSE(std::filesystem::exists(setting.at("run/weight-decay=1e6,seed=1")));
  CHECK_FALSE(std::filesystem::exists(setting.at("run/weight-decay=1e6,seed=2/run_config.json")));
  CHECK(std::filesystem::exists(setting.at("run/weight-decay=1e6,seed=2/notes")));
}

TEST_CASE("--overwrite of a sweep removes no run if one of them is read or in use") {
  const support::SmallFinetuning setting(30);
  REQUIRE(setting.train({"--sweep", "seed=1,2"}).code == 0);
  const std::string second = setting.at("run/seed=2");
  std::filesystem::create_directory_symlink(second, setting.at("link"));
  for (const std::string& model : {second, second + "/checkpoint-1", setting.at("link")}) {
    const Outcome outcome = setting.train({"--sweep", "weight-decay=0,0.1", "--overwrite", "--model", model});
    CHECK(outcome.code == 2);
    CHECK(outcome.error == "error: " + second + ": --overwrite: expected input outside the run that it removes, got " +
                               model + "; hint: name another --output\n");
  }
  {
    const Held in_use(second, ExistingRun::resume);
    const Outcome outcome = setting.train({"--sweep", "weight-decay=0,0.1", "--overwrite"});
    CHECK(outcome.code == 2);
    CHECK(outcome.error.find(second + ": output directory in use by process ") != std::string::npos);
  }
  for (const char* const kept :
       {"seed=1/model.safetensors", "seed=2/model.safetensors", "sweep.tsv", "sweep_seeds.tsv", "report.html"})
    CHECK(std::filesystem::exists(setting.at(std::string("run/") + kept)));
}

TEST_CASE("no table names runs that --overwrite removed, also if the first new run fails") {
  const support::SmallFinetuning setting(30);
  REQUIRE(setting.train({"--sweep", "seed=1,2"}).code == 0);
  const Held in_use(setting.at("run/weight-decay=0"), ExistingRun::resume);
  const Outcome outcome = setting.train({"--sweep", "weight-decay=0,0.1", "--overwrite"});
  CHECK(outcome.code == 2);
  CHECK(outcome.out.starts_with("removing 2 runs of the sweep before\nrun 1 of 2: "));
  for (const char* const gone : {"seed=1", "seed=2", "sweep.tsv", "sweep_seeds.tsv", "report.html"})
    CHECK_FALSE(std::filesystem::exists(setting.at(std::string("run/") + gone)));
}

TEST_CASE("the plan of a run is said if it is not that of the run before") {
  const support::SmallFinetuning setting(30);
  const auto plans = [&](const std::string& sweep) {
    const Outcome outcome = setting.train({"--overwrite", "--sweep", sweep});
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
    int count = 0;
    for (std::size_t at = 0; (at = outcome.out.find("\nplan\n", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  CHECK(plans("seed=1,2") == 1);
  CHECK(plans("batch-size=8,16") == 2);
}
