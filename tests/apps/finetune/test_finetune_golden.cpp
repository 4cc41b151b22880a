// Fine-tuning step by step against figures of transformers and torch in f64.
#include <doctest/doctest.h>

#include <cmath>

#include "io/safetensors.h"
#include "support/paths.h"
#include "support/program.h"

using namespace bertrand;

namespace {

const std::string kData = paths::shared + "/data";

/// The first rows of a file and its header.
std::string head(const std::filesystem::path& file, int rows) {
  const std::string text = support::read_text(file);
  std::size_t end = 0;
  for (int line = 0; line <= rows; ++line) end = text.find('\n', end) + 1;
  return text.substr(0, end);
}

double relative(double got, double expected) {
  return expected == 0 ? std::abs(got) : std::abs(got - expected) / std::abs(expected);
}

float value_at(const io::SafetensorsEntry& entry, std::size_t i) {
  float value = 0;
  std::memcpy(&value, entry.bytes.data() + i * sizeof value, sizeof value);
  return value;
}

}  // namespace

TEST_CASE("the first 64 rows of MRPC in file order give PyTorch's losses, rates, norms and weights") {
  const std::filesystem::path golden = kData + "/golden_model/finetune_mrpc";
  if (!std::filesystem::exists(golden)) {
    MESSAGE("SKIPPED: no data in " << kData);
    return;
  }
  const support::TemporaryDirectory directory;
  support::write_text(directory / "train.tsv", head(kData + "/glue/MRPC/train.tsv", 64));
  const auto settings = nlohmann::json::parse(support::read_text(golden / "golden.json"));
  const auto value = [&](const char* key) { return settings.at(key).dump(); };
  const support::Outcome outcome = support::run_program("finetune", {"--task",
                                                                     "mrpc",
                                                                     "--model",
                                                                     golden,
                                                                     "--vocab-file",
                                                                     kData + "/vocab/bert-base-uncased/vocab.txt",
                                                                     "--train",
                                                                     directory / "train.tsv",
                                                                     "--output",
                                                                     directory / "run",
                                                                     "--no-shuffle",
                                                                     "--log-every",
                                                                     "1",
                                                                     "--epochs",
                                                                     "1",
                                                                     "--batch-size",
                                                                     value("batch"),
                                                                     "--max-seq-length",
                                                                     value("max_seq_length"),
                                                                     "--learning-rate",
                                                                     value("learning_rate"),
                                                                     "--warmup-steps",
                                                                     value("warmup_steps"),
                                                                     "--weight-decay",
                                                                     value("weight_decay"),
                                                                     "--clip-norm",
                                                                     value("clip_norm"),
                                                                     "--adam-epsilon",
                                                                     value("epsilon"),
                                                                     "--threads",
                                                                     "2"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);

  const auto lines = support::read_json_lines(directory / "run/metrics.jsonl");
  const auto& steps = settings.at("steps");
  REQUIRE(lines.size() == steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CAPTURE(i);
    CHECK(relative(lines[i].at("loss"), steps[i].at("loss")) <= 2e-6);
    CHECK(relative(lines[i].at("learning_rate"), steps[i].at("learning_rate")) <= 2e-6);
    CHECK(relative(lines[i].at("grad_norm"), steps[i].at("grad_norm")) <= 1e-5);
  }

  const io::SafetensorsFile expected(golden / "golden.safetensors"), got(directory / "run/model.safetensors");
  CHECK(got.entries().size() == expected.entries().size());
  double sum = 0, largest = 0, count = 0;
  for (const auto& entry : got.entries()) {
    if (entry.name.ends_with("attention.self.key.bias"))
      continue;  // its exact gradient is zero: Adam moves it by rounding noise
    const auto* other = expected.find("after." + entry.name);
    REQUIRE_MESSAGE(other, entry.name);
    REQUIRE(other->bytes.size() == entry.bytes.size());
    for (std::size_t i = 0; i < entry.bytes.size() / sizeof(float); ++i) {
      const double difference = std::abs(static_cast<double>(value_at(entry, i)) - value_at(*other, i));
      sum += difference;
      largest = std::max(largest, difference);
      ++count;
    }
  }
  CHECK(sum / count <= 3e-7);
  CHECK(largest <= 3e-5);
}
