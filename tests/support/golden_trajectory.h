// The run of pretrain that golden.json of golden_model/trajectory describes, step by step against figures of
// transformers and torch in f64.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "io/safetensors.h"
#include "nn/tensor_file.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/worst.h"

namespace support::trajectory {

inline const std::filesystem::path kGolden = bertrand::paths::shared + "/data/golden_model/trajectory";

inline double relative(double got, double expected) {
  return expected == 0 ? std::abs(got) : std::abs(got - expected) / std::abs(expected);
}

inline double value_at(const bertrand::io::SafetensorsEntry& entry, std::size_t i) {
  return bertrand::dispatch(bertrand::nn::dtype_of(entry).value(), [&]<class T>() {
    T value{};
    std::memcpy(&value, entry.bytes.data() + i * sizeof value, sizeof value);
    return static_cast<double>(static_cast<float>(value));  // the figures are stored as f32
  });
}

/// That run with further flags.
inline Outcome run(const std::string& output, const std::vector<std::string>& flags) {
  const std::string data = bertrand::paths::shared + "/data";
  const auto settings = nlohmann::json::parse(read_text(kGolden / "golden.json"));
  std::vector<std::string> all{"--init",
                               kGolden,
                               "--vocab-file",
                               data + "/vocab/bert-base-uncased/vocab.txt",
                               "--input",
                               data + "/golden_pretraining/tf_examples.tfrecord",
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
  return run_program("pretrain", all);
}

struct Difference {
  double mean = 0, worst = 0;
};

/// Attention key biases aside: their exact gradient is zero, so Adam moves them by rounding noise.
inline Difference weight_difference(const std::filesystem::path& model) {
  const bertrand::io::SafetensorsFile expected(kGolden / "golden.safetensors"), got(model);
  Difference difference;
  double count = 0;
  for (const auto& entry : got.entries()) {
    if (entry.name.find("key.bias") != std::string::npos) continue;
    const auto* reference = expected.find("after." + entry.name);
    REQUIRE_MESSAGE(reference, entry.name);
    for (std::size_t i = 0; i < reference->bytes.size() / bertrand::size_of(bertrand::nn::dtype_of(*reference).value());
         ++i, ++count) {
      const double d = std::abs(value_at(entry, i) - value_at(*reference, i));
      difference.mean += d;
      difference.worst = worst_of(difference.worst, d);
    }
  }
  difference.mean /= count;
  return difference;
}

/// The tolerances are relative: of losses and rates, and of the norm of the gradient.
inline void check_steps(const std::filesystem::path& metrics, double loss, double norm) {
  const auto lines = read_json_lines(metrics);
  const auto steps = nlohmann::json::parse(read_text(kGolden / "golden.json")).at("steps");
  REQUIRE(lines.size() == steps.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const char* name : {"loss", "masked_lm_loss", "next_sentence_loss", "learning_rate"})
      CHECK(relative(lines[i].at(name), steps[i].at(name)) <= loss);
    CHECK(relative(lines[i].at("grad_norm"), steps[i].at("grad_norm")) <= norm);
    CHECK(lines[i].at("step") == steps[i].at("step"));
  }
}

}  // namespace support::trajectory
