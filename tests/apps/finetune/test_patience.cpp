// Runs that end early, when the best model has not become better for some evaluations.
#include <doctest/doctest.h>

#include "support/small_finetuning.h"

using namespace bertrand;
using support::Outcome;
using support::read_text;
using support::run_program;

namespace {

using Flags = std::vector<std::string>;

struct Setting : support::SmallFinetuning {
  Setting() : SmallFinetuning(30) {}
};

}  // namespace

TEST_CASE("evaluations without a better model are counted anew from each better one") {
  const Setting setting;
  const Outcome outcome = setting.train({"--epochs", "20", "--learning-rate", "0.05", "--batch-size", "8", "--seed",
                                         "2", "--eval-every", "1", "--patience", "20"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const int best = nlohmann::json::parse(read_text(setting.at("run/eval_results.json"))).at("global_step");
  CHECK(best > 1);  // the first one is the best for some evaluations, then there is a better one
  CHECK(outcome.out.find("finished after " + std::to_string(best + 20) + " steps") != std::string::npos);
}

TEST_CASE("a run ends when its patience does and resumes as finished") {
  const Setting setting;
  const Flags flags = {"--epochs", "9", "--learning-rate", "0", "--patience", "2"};
  const Outcome outcome = setting.train(flags);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("patience    the run ends after 2 evaluations in a row without a better model") !=
        std::string::npos);
  // The first evaluation is the best so far, the second and the third are no better.
  CHECK(outcome.out.find("stopped early: 2 evaluations without a better model (--patience)\nfinished after 3 steps") !=
        std::string::npos);
  CHECK(outcome.out.find("the best model (step 1)") != std::string::npos);
  const Outcome resumed = run_program("finetune", {"--resume", "--output", setting.at("run")});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(resumed.out.find("finished after 3 steps") != std::string::npos);
  CHECK(resumed.out.find("step 4") == std::string::npos);
}

TEST_CASE("a run that ended early goes on with more patience, to the model of a run that had it from the beginning") {
  const Setting setting;
  const auto with = [&](const char* patience, const char* output) {
    return setting.train(
        {"--epochs", "9", "--learning-rate", "0.05", "--patience", patience, "--output", setting.at(output)});
  };
  REQUIRE(with("1", "run").out.find("stopped early: 1 evaluation without a better model") != std::string::npos);
  const Outcome resumed = run_program("finetune", {"--resume", "--patience", "4", "--output", setting.at("run")});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(resumed.out.find("--patience was 1, now 4") != std::string::npos);
  const Outcome whole = with("4", "whole");
  REQUIRE_MESSAGE(whole.code == 0, whole.error);
  CHECK(read_text(setting.at("run/model.safetensors")) == read_text(setting.at("whole/model.safetensors")));
  CHECK(read_text(setting.at("run/eval_results.json")) == read_text(setting.at("whole/eval_results.json")));
}

TEST_CASE("a run that ended early and lost its best model does not take the last one for it") {
  const Setting setting;
  const Flags flags = {"--epochs", "9", "--learning-rate", "0", "--patience", "1", "--save-every", "1", "--keep", "1"};
  REQUIRE(setting.train(flags).code == 0);
  std::filesystem::remove(setting.at("run/model.safetensors"));
  const Outcome resumed = run_program("finetune", {"--resume", "--output", setting.at("run")});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  // The next evaluation, of step 3, decides anew, and one more is no better.
  CHECK(resumed.out.find("finished after 4 steps") != std::string::npos);
  CHECK(resumed.out.find("the best model (step 3)") != std::string::npos);
}
