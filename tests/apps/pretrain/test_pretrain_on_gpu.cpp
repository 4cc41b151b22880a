// Pre-training on a GPU, whose steps are looked at when the next has been asked for. The GPU is emulated.
#include <doctest/doctest.h>

#include <algorithm>

#include "apps/pretrain/pretrain_setting.h"

using support::Outcome;
using support::PretrainSetting;

namespace {

Outcome train(const PretrainSetting& setting, const std::string& output, const std::vector<std::string>& more) {
  return setting.run(output,
                     support::with_defaults(
                         {"--batch-size", "2", "--max-seq-length", "12", "--steps", "4", "--save-every", "2"}, more));
}

}  // namespace

TEST_CASE("every step of a run on a GPU is logged as the CPU's, evaluated, saved and resumed in the same bits") {
  const PretrainSetting setting;
  const std::string held_out = setting.directory / "held_out.txt";
  const std::vector<std::string> gpu = {"--device", "emulated-cuda", "--eval-input", held_out, "--eval-every", "3"};
  REQUIRE(train(setting, "cpu", {"--eval-input", held_out, "--eval-every", "3"}).code == 0);
  const Outcome outcome = train(setting, "gpu", gpu);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const auto expected = setting.metrics("cpu"), got = setting.metrics("gpu");
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    for (const auto& [key, value] : expected[i].items())
      CHECK_MESSAGE(got[i].at(key).get<double>() == doctest::Approx(value.get<double>()).scale(1e-12).epsilon(1e-4),
                    key);

  const double predicted = std::stod(outcome.out.substr(outcome.out.find("memory      ") + 12)) * 1e3;
  double measured = 0;
  for (const auto& line : support::read_json_lines(setting.directory / "gpu/metrics.jsonl"))
    measured = std::max(measured, line.value("memory_bytes", 0.0));
  CHECK(predicted == doctest::Approx(measured).epsilon(0.05));

  std::filesystem::copy(setting.directory / "gpu", setting.directory / "resumed",
                        std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(setting.directory / "resumed/checkpoint-4");
  std::vector<std::string> resume = gpu;
  resume.emplace_back("--resume");
  REQUIRE(train(setting, "resumed", resume).code == 0);
  CHECK(setting.file("resumed/model.safetensors") == setting.file("gpu/model.safetensors"));
  CHECK(setting.metrics("resumed") == got);
}

TEST_CASE("a step on a GPU that is not finite ends the run with 6 although the next was asked for, and is named") {
  const PretrainSetting setting;
  for (const std::string save_every : {"1", "2", "3"}) {
    CAPTURE(save_every);
    const std::string run = "run-" + save_every;
    const Outcome outcome = train(
        setting, run,
        {"--device", "emulated-cuda", "--learning-rate", "1e6", "--weight-decay", "1e6", "--save-every", save_every});
    CHECK(outcome.code == 6);
    CHECK(outcome.error.find("error: step 3: op attention: forward") == 0);
    CHECK((outcome.error.find("; last checkpoint: ") != std::string::npos) == (save_every != "3"));
    CHECK(setting.metrics(run).size() == 2);
    CHECK(std::filesystem::exists(setting.directory / run / "checkpoint-2") == (save_every != "3"));
    CHECK_FALSE(std::filesystem::exists(setting.directory / run / "checkpoint-3"));
  }
}
