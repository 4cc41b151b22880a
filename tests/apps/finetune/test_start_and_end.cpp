// Models that no run can start from, and steps that move none.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>

#include "support/small_model.h"

using support::Outcome;
using support::run_program;
using support::write_text;

namespace {

struct Setting {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_model(directory / "model");
    std::string text = "text,size\n";
    for (int i = 0; i < 24; ++i) text += fmt::format("{} fish,{}\n", i % 2 ? "red" : "blue", 900 + 10 * i);
    write_text(directory / "train.csv", text);
  }
  Outcome run(const std::vector<std::string>& flags) const {
    return run_program("finetune",
                       support::with_defaults({"--task", "custom", "--kind", "regression", "--label-column", "size",
                                               "--model", directory / "model", "--output", directory / "run",
                                               "--max-seq-length", "16", "--batch-size", "6", "--threads", "1"},
                                              flags));
  }
  std::string path(const std::string& name) const { return (directory / name).string(); }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a run whose steps f16 skips says so in its lines and at its end") {
  const Setting setting;
  const auto train = [&](const std::string& precision) {
    return setting.run({"--train", setting.path("train.csv"), "--steps", "8", "--log-every", "4", "--precision",
                        precision, "--overwrite"});
  };
  const Outcome skipped = train("f16");
  REQUIRE_MESSAGE(skipped.code == 0, skipped.error);
  CHECK(has(skipped.out, "  4 skipped\n"));
  CHECK(skipped.error ==
        "warning: 8 of 8 steps were skipped, because a gradient was not finite in f16: no step moved the model; hint: "
        "--precision bf16 or f32, or smaller targets\n");
  // A few steps find the loss scale, which is no reason to warn.
  write_text(setting.path("small.csv"), "text,size\nred fish,1\nblue fish,0.5\nbird,2\n");
  const Outcome few = setting.run({"--train", setting.path("small.csv"), "--steps", "8", "--log-every", "8",
                                   "--batch-size", "3", "--precision", "f16", "--overwrite"});
  CHECK(has(few.out, " skipped\n"));
  CHECK(few.error.empty());
  const Outcome moved = train("bf16");
  CHECK_FALSE(has(moved.out, "skipped"));
  CHECK(moved.error.empty());
}

TEST_CASE(
    "steps that f16 skipped before a run was resumed count in its whole and not in its lines, nor in another type") {
  const Setting setting;
  const Outcome begun =
      setting.run({"--train", setting.path("train.csv"), "--steps", "8", "--log-every", "4", "--precision", "f16"});
  REQUIRE_MESSAGE(begun.code == 0, begun.error);
  const auto resume = [&](const std::string& steps, const std::string& precision) {
    return run_program("finetune",
                       {"--resume", "--output", setting.path("run"), "--steps", steps, "--precision", precision});
  };
  const Outcome f16 = resume("11", "f16");
  CHECK(has(f16.out, "  3 skipped\n"));
  CHECK(has(f16.error, "warning: 11 of 11 steps were skipped, "));
  const Outcome f32 = resume("13", "f32");
  CHECK(f32.code == 0);
  CHECK_FALSE(has(f32.out, "skipped"));
  CHECK(f32.error.empty());
}

TEST_CASE("steps that f16 skipped are warned of again where a run that kept its model alone is resumed at its end") {
  const Setting setting;
  const Outcome begun =
      setting.run({"--train", setting.path("train.csv"), "--steps", "8", "--precision", "f16", "--save-model-only"});
  REQUIRE_MESSAGE(begun.code == 0, begun.error);
  CHECK(has(begun.error, "warning: 8 of 8 steps were skipped, "));
  const Outcome resumed = run_program("finetune", {"--resume", "--output", setting.path("run")});
  CHECK(resumed.code == 0);
  CHECK(resumed.error == begun.error);
}

TEST_CASE("steps that f16 skips are warned of from a tenth of all steps on") {
  const Setting setting;
  const auto warning = [&](int steps) {  // the model stays as it is, so runs of any length skip the same steps
    const Outcome outcome = setting.run({"--train", setting.path("train.csv"), "--steps", std::to_string(steps),
                                         "--precision", "f16", "--learning-rate", "0", "--overwrite"});
    CHECK(outcome.code == 0);
    return outcome.error;
  };
  const std::string first = warning(60);
  REQUIRE(first.starts_with("warning: "));
  const int skipped = std::stoi(first.substr(9));
  CHECK(warning(10 * skipped).starts_with(fmt::format("warning: {} of {} steps were skipped", skipped, 10 * skipped)));
  CHECK(warning(10 * skipped + 1).empty());
  CHECK(warning(3).starts_with("warning: 3 of 3 steps were skipped"));  // few, but all
}

TEST_CASE("weights that are no numbers are refused before the first step, with the tensor") {
  const Setting setting;
  const std::string file = setting.path("model/model.safetensors");
  std::string bytes = support::read_text(file);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(bytes.data() + bytes.size() - sizeof nan, &nan, sizeof nan);
  write_text(file, bytes);
  for (const char* precision : {"f32", "f16"}) {
    const Outcome outcome =
        setting.run({"--train", setting.path("train.csv"), "--steps", "2", "--precision", precision, "--overwrite"});
    CHECK(outcome.code == 4);
    CHECK(outcome.error.starts_with("error: " + file + ": tensor \"bert."));
    CHECK(has(outcome.error, "\": expected finite numbers, got NaN or infinity; hint: the model is damaged\n"));
  }
}

TEST_CASE("a model without the task's head predicts nothing, and the hint is to train it") {
  const Setting setting;
  const Outcome outcome = setting.run({"--predict", setting.path("train.csv")});
  CHECK(outcome.code == 4);
  CHECK(outcome.error == "error: " + setting.path("model") +
                             ": weights: expected a model that is fine-tuned for the task, got none for "
                             "classifier.weight; hint: --train\n");
}
