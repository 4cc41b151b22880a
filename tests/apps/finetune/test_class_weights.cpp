// Losses whose classes have weights, and targets that are smoothed.
#include <doctest/doctest.h>

#include "support/small_finetuning.h"

using support::Outcome;
using support::read_text;
using support::write_text;

namespace {

using Flags = std::vector<std::string>;

struct Setting : support::SmallFinetuning {
  Setting() : SmallFinetuning(30) {}
  double loss_of_first_step(const std::string& output, const Flags& more) const {
    const Outcome outcome = finetune(
        output, support::with_defaults({"--train", at("train.csv"), "--log-every", "1", "--steps", "1"}, more));
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    return support::read_json_lines(at(output + "/metrics.jsonl")).front().at("loss");
  }
};

}  // namespace

TEST_CASE("class weights and label smoothing change the loss as their formulas say") {
  const Setting setting;
  const double plain = setting.loss_of_first_step("plain", {});
  CHECK(setting.loss_of_first_step("ones", {"--class-weights", "1,1"}) == doctest::Approx(plain).epsilon(1e-6));
  CHECK(setting.loss_of_first_step("balanced", {"--class-weights", "balanced"}) ==
        doctest::Approx(plain).epsilon(1e-6));  // 15 of each
  CHECK(setting.loss_of_first_step("scaled", {"--class-weights", "3,3"}) == doctest::Approx(plain).epsilon(1e-6));
  CHECK(setting.loss_of_first_step("fish", {"--class-weights", "1e-6,1"}) != doctest::Approx(plain).epsilon(1e-3));
  CHECK(setting.loss_of_first_step("smooth", {"--label-smoothing", "0.5"}) != doctest::Approx(plain).epsilon(1e-6));
  write_text(setting.at("more_birds.csv"), read_text(setting.at("train.csv")) + "a red bird flies,bird\n" +
                                               "one bird,bird\nthe bird,bird\n");  // 18 of 33
  const auto of_more_birds = [&](const std::string& output, const std::string& weights) {
    return setting.loss_of_first_step(
        output, {"--train", setting.at("more_birds.csv"), "--class-weights", weights, "--batch-size", "33"});
  };
  const double balanced = of_more_birds("more birds", "balanced");
  CHECK(balanced == doctest::Approx(of_more_birds("in numbers", "15,18")).epsilon(1e-6));
  CHECK(balanced != doctest::Approx(of_more_birds("not balanced", "1,1")).epsilon(1e-6));
  CHECK(setting.train({"--class-weights", "1,2,3"}).error ==
        "error: --class-weights: expected 2, a number for each of {bird,fish}, got 3 of them\n");
  CHECK(setting.train({"--class-weights", "1,x"}).error ==
        "error: --class-weights: expected a number, 1e-06 to 1000000, got \"x\"\n");
}

TEST_CASE("weighted losses have the same bits for any number of replicas") {
  const Setting setting;
  const Flags flags = {"--class-weights",    "1,5", "--label-smoothing", "0.1", "--batch-size", "8",
                       "--micro-batch-size", "2",   "--epochs",          "3"};
  REQUIRE(setting.train(flags).code == 0);
  Flags several = flags;
  several.insert(several.end(), {"--replicas", "3", "--output", setting.at("several")});
  REQUIRE(setting.train(several).code == 0);
  for (const std::string name : {"model.safetensors", "eval_report.tsv", "eval_results.txt"}) {
    const std::string expected = read_text(setting.at("run/" + name));
    CHECK_MESSAGE(!expected.empty(), name);  // also what a file that is missing is read as
    CHECK_MESSAGE(read_text(setting.at("several/" + name)) == expected, name);
  }
}
