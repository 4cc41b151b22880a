// Fine-tuning step by step against figures of transformers and torch in f64.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "io/safetensors.h"
#include "support/gzip.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/worst.h"

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

/// What to train, beside what golden.json says.
struct Training {
  std::string task;
  std::filesystem::path train, output;
  std::vector<std::string> more = {};  ///< flags
};

/// Trains in file order as golden.json says.
support::Outcome train_as_golden(const std::filesystem::path& golden, const Training& training) {
  const auto settings = nlohmann::json::parse(support::read_text(golden / "golden.json"));
  std::vector<std::string> flags = {"--task",
                                    training.task,
                                    "--model",
                                    golden,
                                    "--vocab-file",
                                    kVocabulary,
                                    "--train",
                                    training.train,
                                    "--output",
                                    training.output,
                                    "--no-shuffle",
                                    "--log-every",
                                    "1",
                                    "--steps",
                                    std::to_string(settings.at("steps").size()),
                                    "--threads",
                                    "2"};
  for (const auto& [flag, key] :
       std::vector<std::pair<std::string, std::string>>{{"--batch-size", "batch"},
                                                        {"--max-seq-length", "max_seq_length"},
                                                        {"--learning-rate", "learning_rate"},
                                                        {"--warmup-steps", "warmup_steps"},
                                                        {"--weight-decay", "weight_decay"},
                                                        {"--clip-norm", "clip_norm"},
                                                        {"--adam-epsilon", "epsilon"}})
    if (settings.contains(key)) flags.insert(flags.end(), {flag, settings.at(key).dump()});
  flags.insert(flags.end(), training.more.begin(), training.more.end());
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

/// `still`: what has an exact gradient of zero, as attention key biases always have. Adam moves it by rounding noise.
void check_weights(const std::filesystem::path& golden, const std::filesystem::path& run,
                   const std::set<std::string>& still = {}) {
  const io::SafetensorsFile expected(golden / "golden.safetensors"), got(run / "model.safetensors");
  CHECK(got.entries().size() == expected.entries().size());
  double sum = 0, largest = 0, count = 0;
  for (const auto& entry : got.entries()) {
    if (entry.name.ends_with("attention.self.key.bias") || still.contains(entry.name)) continue;
    const auto* other = expected.find("after." + entry.name);
    REQUIRE_MESSAGE(other, entry.name);
    REQUIRE(other->bytes.size() == entry.bytes.size());
    for (std::size_t i = 0; i < entry.bytes.size() / sizeof(float); ++i) {
      const double difference = std::abs(static_cast<double>(value_at(entry, i)) - value_at(*other, i));
      sum += difference;
      largest = support::worst_of(largest, difference);
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
  const support::Outcome outcome = train_as_golden(golden, {"mrpc", directory / "train.tsv", directory / "run"});
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
  const support::Outcome outcome = train_as_golden(golden, {"ner", directory / "train.conll", directory / "run"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  check_steps(golden, directory / "run");
  check_weights(golden, directory / "run");
  const auto config = nlohmann::json::parse(support::read_text(directory / "run/config.json"));
  const auto expected = nlohmann::json::parse(support::read_text(golden / "config.json"));
  for (const char* key : {"architectures", "id2label", "label2id"}) CHECK(config.at(key) == expected.at(key));
}

TEST_CASE("the first 96 windows of SQuAD 2.0 in file order give PyTorch's losses, rates, norms and weights") {
  const std::filesystem::path golden = golden_or_skip("finetune_squad2");
  if (golden.empty()) return;
  const support::TemporaryDirectory directory;
  const support::Outcome outcome =
      train_as_golden(golden, {"squad2",
                               kData + "/squad/small/train-v2.json",
                               directory / "run",
                               {"--max-seq-length", "128", "--doc-stride", "64", "--max-query-length", "24"}});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  check_steps(golden, directory / "run");
  // A softmax does not change if all of its logits move alike.
  check_weights(golden, directory / "run", {"qa_outputs.bias", "bert.encoder.layer.1.output.LayerNorm.bias"});
}

TEST_CASE("the answers to 1859 questions of SQuAD 2.0 are those that Google's script writes for PyTorch's logits") {
  const std::filesystem::path golden = golden_or_skip("squad2_predict");
  if (golden.empty()) return;
  const support::TemporaryDirectory directory;
  const support::Outcome outcome = support::run_program("finetune", {"--task",
                                                                     "squad2",
                                                                     "--model",
                                                                     golden,
                                                                     "--vocab-file",
                                                                     kVocabulary,
                                                                     "--predict",
                                                                     kData + "/squad/small/dev-v2.json",
                                                                     "--output",
                                                                     directory / "run",
                                                                     "--max-seq-length",
                                                                     "128",
                                                                     "--doc-stride",
                                                                     "64",
                                                                     "--max-query-length",
                                                                     "24",
                                                                     "--null-score-diff-threshold",
                                                                     "3.956",
                                                                     "--threads",
                                                                     "2"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(support::read_text(directory / "run/predictions.json") == support::read_text(golden / "predictions.json"));
  const auto json = [](const std::string& text) { return nlohmann::json::parse(text); };
  const auto odds = json(support::read_text(directory / "run/null_odds.json")),
             google_odds = json(support::read_text(golden / "null_odds.json")),
             n_best = json(support::read_text(directory / "run/nbest_predictions.json")),
             google_n_best = json(support::unpacked(golden / "nbest_predictions.json.gz"));
  REQUIRE(odds.size() == google_odds.size());
  REQUIRE(n_best.size() == google_n_best.size());
  double worst = 0;
  std::size_t other_lists = 0;
  for (const auto& [id, entries] : google_n_best.items()) {
    worst = support::worst_of(worst, std::abs(odds.at(id).get<double>() - google_odds.at(id).get<double>()));
    const auto& own = n_best.at(id);
    bool same = own.size() == entries.size();
    for (std::size_t i = 0; same && i < entries.size(); ++i) {
      same = own[i].at("text") == entries[i].at("text");
      for (const char* name : {"probability", "start_logit", "end_logit"})
        if (same)
          worst = support::worst_of(worst, std::abs(own[i].at(name).get<double>() - entries[i].at(name).get<double>()));
    }
    other_lists += !same;
  }
  MESSAGE("figures differ by at most " << worst << " and lists of " << other_lists << " questions by their order");
  CHECK(worst <= 1e-5);
  CHECK(other_lists <= 2);  // f32 may turn two answers that score nearly the same
}
