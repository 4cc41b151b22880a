// Pre-training step by step against figures of transformers and torch in f64.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "bert/formats/safetensors.h"
#include "support/paths.h"
#include "support/program.h"

using namespace bertrand;

namespace {

const std::string kData = paths::shared + "/data";

double relative(double got, double expected) {
  return expected == 0 ? std::abs(got) : std::abs(got - expected) / std::abs(expected);
}

double value_at(const formats::SafetensorsEntry& entry, std::size_t i) {
  return dispatch(entry.dtype.value(), [&]<class T>() {
    T value{};
    std::memcpy(&value, entry.bytes.data() + i * sizeof value, sizeof value);
    return static_cast<double>(static_cast<float>(value));  // the figures are stored as f32
  });
}

/// The run that golden.json of the trajectory describes, with further flags.
support::Outcome run_trajectory(const std::filesystem::path& golden, const std::string& output,
                                const std::vector<std::string>& flags) {
  const auto settings = nlohmann::json::parse(support::read_text(golden / "golden.json"));
  std::vector<std::string> all{"--init",
                               golden,
                               "--vocab-file",
                               kData + "/vocab/bert-base-uncased/vocab.txt",
                               "--input",
                               kData + "/golden_pretraining/tf_examples.tfrecord",
                               "--output",
                               output,
                               "--no-shuffle",
                               "--log-every",
                               "1",
                               "--threads",
                               "2"};
  for (const auto& [flag, key] : std::vector<std::pair<std::string, std::string>>{{"--batch-size", "batch"},
                                                                                  {"--steps", "total_steps"},
                                                                                  {"--learning-rate", "learning_rate"},
                                                                                  {"--warmup-steps", "warmup_steps"},
                                                                                  {"--weight-decay", "weight_decay"},
                                                                                  {"--clip-norm", "clip_norm"}})
    all.insert(all.end(), {flag, settings.at(key).dump()});
  for (const std::string flag : {"optimizer", "schedule"})
    all.insert(all.end(), {"--" + flag, settings.at(flag).get<std::string>()});
  all.insert(all.end(), flags.begin(), flags.end());
  return support::run_program("pretrain", all);
}

struct Difference {
  double mean = 0, worst = 0;
};

/// Attention key biases aside: their exact gradient is zero, so Adam moves them by rounding noise.
Difference weight_difference(const std::filesystem::path& model, const std::filesystem::path& golden) {
  const formats::SafetensorsFile expected(golden / "golden.safetensors"), got(model);
  Difference difference;
  double count = 0;
  for (const auto& entry : got.entries()) {
    if (entry.name.find("key.bias") != std::string::npos) continue;
    const auto* reference = expected.find("after." + entry.name);
    REQUIRE_MESSAGE(reference, entry.name);
    for (std::size_t i = 0; i < reference->bytes.size() / size_of(reference->dtype.value()); ++i, ++count) {
      const double d = std::abs(value_at(entry, i) - value_at(*reference, i));
      difference.mean += d;
      difference.worst = std::max(difference.worst, d);
    }
  }
  difference.mean /= count;
  return difference;
}

/// The tolerances are relative, of f32 and f64.
void check_steps(const std::filesystem::path& metrics, const std::filesystem::path& golden, double loss, double norm) {
  const auto lines = support::read_json_lines(metrics);
  const auto steps = nlohmann::json::parse(support::read_text(golden / "golden.json")).at("steps");
  REQUIRE(lines.size() == steps.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const char* name : {"loss", "masked_lm_loss", "next_sentence_loss", "learning_rate"})
      CHECK(relative(lines[i].at(name), steps[i].at(name)) <= loss);
    CHECK(relative(lines[i].at("grad_norm"), steps[i].at("grad_norm")) <= norm);
    CHECK(lines[i].at("step") == steps[i].at("step"));
  }
}

}  // namespace

TEST_CASE("pre-training on Google's records in file order gives PyTorch's losses, rates, norms and weights") {
  const std::filesystem::path golden = kData + "/golden_model/trajectory";
  if (!std::filesystem::exists(golden)) {
    MESSAGE("SKIPPED: no data in " << kData);
    return;
  }
  const support::TemporaryDirectory directory;
  const support::Outcome outcome = run_trajectory(golden, directory / "run", {});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  check_steps(directory / "run/metrics.jsonl", golden, 2e-6, 1e-5);
  const Difference f32 = weight_difference(directory / "run/model.safetensors", golden);
  CHECK(f32.mean <= 3e-7);
  CHECK(f32.worst <= 3e-5);

  const support::Outcome parts = run_trajectory(golden, directory / "parts", {"--micro-batch-size", "6"});
  REQUIRE_MESSAGE(parts.code == 0, parts.error);
  check_steps(directory / "parts/metrics.jsonl", golden, 2e-6, 1e-5);

  const support::Outcome precise = run_trajectory(golden, directory / "f64", {"--precision", "f64"});
  REQUIRE_MESSAGE(precise.code == 0, precise.error);
  check_steps(directory / "f64/metrics.jsonl", golden, 1e-9, 1e-9);
  const Difference f64 = weight_difference(directory / "f64/model.safetensors", golden);
  CHECK(f64.worst <= 2e-7);
}
