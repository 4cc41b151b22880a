// Fine-tuning step by step against figures of transformers and torch in f64.
#include <doctest/doctest.h>

#include <cmath>

#include "io/safetensors.h"
#include "support/paths.h"
#include "support/program.h"

using namespace bertrand;

namespace {

const std::string kData = paths::shared + "/data", kVocabulary = kData + "/vocab/bert-base-uncased/vocab.txt";

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

/// Trains on `train` in file order as golden.json says.
support::Outcome train_as_golden(const std::filesystem::path& golden, const std::string& task,
                                 const std::filesystem::path& train, const std::filesystem::path& output) {
  const auto settings = nlohmann::json::parse(support::read_text(golden / "golden.json"));
  std::vector<std::string> flags = {
      "--task", task,           "--model",     golden, "--vocab-file", kVocabulary, "--train",   train, "--output",
      output,   "--no-shuffle", "--log-every", "1",    "--epochs",     "1",         "--threads", "2"};
  for (const auto& [flag, key] :
       std::vector<std::pair<std::string, std::string>>{{"--batch-size", "batch"},
                                                        {"--max-seq-length", "max_seq_length"},
                                                        {"--learning-rate", "learning_rate"},
                                                        {"--warmup-steps", "warmup_steps"},
                                                        {"--weight-decay", "weight_decay"},
                                                        {"--clip-norm", "clip_norm"},
                                                        {"--adam-epsilon", "epsilon"}})
    flags.insert(flags.end(), {flag, settings.at(key).dump()});
  return support::run_program("finetune", flags);
}

void check_steps(const std::filesystem::path& golden, const std::filesystem::path& run) {
  const auto lines = support::read_json_lines(run / "metrics.jsonl");
  const auto steps = nlohmann::json::parse(support::read_text(golden / "golden.json")).at("steps");
  REQUIRE(lines.size() == steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CAPTURE(i);
    CHECK(relative(lines[i].at("loss"), steps[i].at("loss")) <= 2e-6);
    CHECK(relative(lines[i].at("learning_rate"), steps[i].at("learning_rate")) <= 2e-6);
    CHECK(relative(lines[i].at("grad_norm"), steps[i].at("grad_norm")) <= 1e-5);
  }
}

void check_weights(const std::filesystem::path& golden, const std::filesystem::path& run) {
  const io::SafetensorsFile expected(golden / "golden.safetensors"), got(run / "model.safetensors");
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

/// The golden directory; empty if there is none.
std::filesystem::path golden_or_skip(const std::string& name) {
  const std::filesystem::path golden = kData + "/golden_model/" + name;
  if (std::filesystem::exists(golden)) return golden;
  MESSAGE("SKIPPED: no data in " << kData);
  return {};
}

}  // namespace

TEST_CASE("the first 64 rows of MRPC in file order give PyTorch's losses, rates, norms and weights") {
  const std::filesystem::path golden = golden_or_skip("finetune_mrpc");
  if (golden.empty()) return;
  const support::TemporaryDirectory directory;
  support::write_text(directory / "train.tsv", head(kData + "/glue/MRPC/train.tsv", 64));
  const support::Outcome outcome = train_as_golden(golden, "mrpc", directory / "train.tsv", directory / "run");
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  check_steps(golden, directory / "run");
  check_weights(golden, directory / "run");
}

TEST_CASE("the first 64 sentences of WNUT-17 in file order give PyTorch's losses, rates, norms and weights") {
  const std::filesystem::path golden = golden_or_skip("finetune_ner");
  if (golden.empty()) return;
  const support::TemporaryDirectory directory;
  const std::string text = support::read_text(kData + "/ner/wnut17/dev.conll");
  std::size_t end = 0;
  for (int sentence = 0; sentence < 64; ++sentence) end = text.find("\n\n", end) + 2;
  support::write_text(directory / "train.conll", text.substr(0, end));
  const support::Outcome outcome = train_as_golden(golden, "ner", directory / "train.conll", directory / "run");
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  check_steps(golden, directory / "run");
  check_weights(golden, directory / "run");
  const auto config = nlohmann::json::parse(support::read_text(directory / "run/config.json"));
  const auto expected = nlohmann::json::parse(support::read_text(golden / "config.json"));
  for (const char* key : {"architectures", "id2label", "label2id"}) CHECK(config.at(key) == expected.at(key));
}
