// Fine-tuning's evaluation and predictions: what the plan makes room for, what is resumed, and what an error names.
#include "bert/objectives/finetuning.h"

#include <doctest/doctest.h>

#include <limits>

#include "bert/objectives/ranking_task.h"
#include "bert/objectives/token_task.h"
#include "distributed/replica.h"
#include "nn/parameter_set.h"
#include "support/program.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::objectives;

namespace {

const bert::Config kConfig{.vocab_size = 9,
                           .hidden_size = 16,
                           .num_hidden_layers = 1,
                           .num_attention_heads = 2,
                           .intermediate_size = 32,
                           .max_position_embeddings = 16};

/// Files of a task, with a tokenizer of the words a, b, c and d.
struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n", "vocab.txt")};

  std::filesystem::path file(const std::string& name, const std::string& text) const {
    support::write_text(directory / name, text);
    return directory / name;
  }
  std::filesystem::path triples() const { return file("triples", "a\tb\tc\nb\tc\td\n"); }
  /// Of two queries, by turns.
  std::filesystem::path candidates(int count) const {
    std::string lines;
    for (int i = 0; i < count; ++i)
      lines += std::to_string(i % 2) + "\tp" + std::to_string(i) + "\ta b\t" + std::string(i % 3 == 0 ? "c" : "d a b") +
               (i % 5 == 0 ? " c\n" : "\n");
    return file("candidates" + std::to_string(count), lines);
  }
  RankingTask ranking(const RankingTask::Inputs& files, const bert::Config& config = kConfig) const {
    RankingTask::Inputs inputs = files;
    inputs.qrels = file("qrels", "0\t0\tp0\t1\n");
    inputs.lengths = {.sequence = 16, .query = 6};
    return {inputs, config, tokenizer};
  }
};

/// The model of a task.
struct Model {
  Model(const FineTuningTask& task, std::int64_t batch, const io::SpillPlace& spill = {})
      : objective(task, batch, self, /*quiet=*/true, spill), parameters(objective.model(), *backend, {.seed = 5}) {}

  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  distributed::Replica self{*backend};
  FineTuningObjective objective;
  nn::ParameterSet parameters;
};

std::vector<float> values_of(const std::optional<tasks::Logits>& outputs) {
  const std::span<const float> values = outputs.value().values.all();
  return {values.begin(), values.end()};
}

/// The memory of the plan's evaluation, by that of the run's.
double planned_over_real(const FineTuningTask& task) {
  Model real(task, 2);
  real.objective.evaluate();
  real.objective.predict(File::prediction);
  const std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  const auto largest = real.objective.largest(self, 2);
  const nn::ParameterSet parameters(largest->model(), *backend, {.seed = 5});
  largest->evaluate();
  return static_cast<double>(backend->memory().peak) / static_cast<double>(real.backend->memory().peak);
}

}  // namespace

TEST_CASE("the plan has room for the longest rows to evaluate and to predict though those to train on are shorter") {
  const Setting setting;
  CHECK(planned_over_real(setting.ranking({.train = setting.triples(), .evaluation = setting.candidates(6)})) >= 1);
  CHECK(planned_over_real(setting.ranking({.train = setting.triples(), .prediction = setting.candidates(6)})) >= 1);
  const std::string words = "a X\nb Y\na X\nb Y\na X\nb Y\na X\nb Y\n\nb Y\n\na X\n";
  for (const bool evaluates : {true, false}) {
    tasks::TaskFiles files;
    files.train = setting.file("train", "a X\n\nb Y\n");
    if (evaluates) files.evaluation = setting.file("dev", words);
    else files.prediction = setting.file("new", "a\nb\na\nb\na\nb\na\nb\n\nb\n\na\n");
    const TokenTask task(tasks::read_token_data({.columns = {}, .windows = {.max_length = 16, .overlap = 0}}, files, {},
                                                setting.tokenizer),
                         kConfig, setting.tokenizer);
    CHECK(planned_over_real(task) >= 1);
  }
}

TEST_CASE("outputs and candidates of two files are planned as twice those of one, and a part of the outputs once") {
  const Setting setting;
  const std::filesystem::path file = setting.candidates(40);
  const RankingTask one = setting.ranking({.evaluation = file}),
                    two = setting.ranking({.evaluation = file, .prediction = file});
  const Model of_one(one, 2), of_two(two, 2);
  CHECK(of_one.objective.bytes_of_outputs() >= 2 * 40 * 2 * sizeof(float));
  constexpr std::size_t kPart = 32 * 2 * sizeof(float);  // of 16 batches of two
  CHECK(of_two.objective.bytes_of_outputs() == 2 * of_one.objective.bytes_of_outputs() - 2 * kPart);
  CHECK(of_one.objective.data_bytes() > 40);
  CHECK(of_two.objective.data_bytes() == 2 * of_one.objective.data_bytes());
}

TEST_CASE("outputs of words are planned for each of their tokens, and as much again for figures") {
  const Setting setting;
  tasks::TaskFiles files;
  files.evaluation = setting.file("dev", "a X\nb Y\n\na X\n");
  const TokenTask task(
      tasks::read_token_data({.columns = {}, .windows = {.max_length = 16, .overlap = 0}}, files,
                             {.config = "", .problem_type = "", .labels = {"X", "Y"}}, setting.tokenizer),
      kConfig, setting.tokenizer);
  // [CLS] a b [SEP] and [CLS] a [SEP], of two labels each; they are one part.
  CHECK(Model(task, 2).objective.bytes_of_outputs() == 2 * 7 * (2 * 2 * sizeof(float) + sizeof(double)));
}

TEST_CASE("outputs are the same from memory and from the disk, where the plan counts no more than is held and a part") {
  const Setting setting;
  const std::filesystem::path place = setting.directory / "run";
  std::filesystem::create_directory(place);
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += std::string(i % 3 == 0 ? "a X\nb Y\n" : "a X\n") + "\n";
  tasks::TaskFiles files;
  files.evaluation = setting.file("dev", lines);
  const TokenTask words(
      tasks::read_token_data({.columns = {}, .windows = {.max_length = 16, .overlap = 0}}, files,
                             {.config = "", .problem_type = "", .labels = {"X", "Y"}}, setting.tokenizer),
      kConfig, setting.tokenizer);
  const RankingTask passages = setting.ranking({.evaluation = setting.candidates(90)});
  const io::SpillPlace spill{.directory = place, .held_bytes = 100};
  for (const FineTuningTask* task :
       {static_cast<const FineTuningTask*>(&words), static_cast<const FineTuningTask*>(&passages)}) {
    const std::optional<tasks::Logits> whole = Model(*task, 64).objective.predict(File::evaluation),  // one part
        held = Model(*task, 2).objective.predict(File::evaluation),
                                       spilled = Model(*task, 2, spill).objective.predict(File::evaluation);
    CHECK_FALSE(held->values.is_spilled());
    CHECK(spilled->values.is_spilled());
    CHECK(spilled->rows() == held->rows());
    CHECK(values_of(held) == values_of(whole));
    CHECK(values_of(spilled) == values_of(held));
  }
  CHECK(std::filesystem::is_empty(place));
  // A part has 16 batches of two, each at most [CLS] a b [SEP], with two outputs.
  constexpr std::size_t kPart = 32 * 2 * sizeof(float);
  CHECK(Model(words, 2, spill).objective.bytes_of_outputs() == 2 * (2 * 100 + 4 * kPart));
  CHECK(Model(passages, 2, spill).objective.bytes_of_outputs() == 2 * (100 + 90 * sizeof(double) + kPart));
}

TEST_CASE("a prediction goes on with whole parts that were kept and computes again what is of half a part") {
  const Setting setting;
  const RankingTask task = setting.ranking({.prediction = setting.candidates(40)});
  const std::vector<float> computed = values_of(Model(task, 1).objective.predict(File::prediction));
  REQUIRE(computed.size() == 80);
  const std::filesystem::path file = setting.directory / "kept";
  const auto kept = [&](KeptOutputs::Earlier earlier) {
    return KeptOutputs({.file = file, .identity = "model", .width = 2}, earlier, io::Files::system());
  };
  for (const std::size_t rows : {16, 32}) {  // a part is 16 batches: with batches of two, 32 rows
    CAPTURE(rows);
    const std::vector<float> earlier(2 * rows, 7);
    kept(KeptOutputs::Earlier::ignore).append(earlier);
    KeptOutputs outputs = kept(KeptOutputs::Earlier::resume);
    std::vector<float> expected = computed;
    if (rows == 32) std::ranges::copy(earlier, expected.begin());
    CHECK(values_of(Model(task, 2).objective.predict(File::prediction, &outputs)) == expected);
    CHECK(kept(KeptOutputs::Earlier::resume).values() == expected);
  }
}

TEST_CASE("outputs that are not finite are refused with the number of the first such example in its file") {
  const Setting setting;
  tasks::TaskFiles files;
  files.evaluation = setting.file("dev", "a X\n\na X\nb Y\na X\n\na X\nd Y\n\nb X\n");
  const TokenTask words(
      tasks::read_token_data({.columns = {}, .windows = {.max_length = 16, .overlap = 0}}, files,
                             {.config = "", .problem_type = "", .labels = {"X", "Y"}}, setting.tokenizer),
      kConfig, setting.tokenizer);
  const auto refusal = [&](const FineTuningTask& task, File file, std::int64_t batch) {
    const Model model(task, batch);
    const auto& table = *model.parameters.find("bert.embeddings.word_embeddings.weight");
    model.parameters.value(table).span<float>()[8 * 16] = std::numeric_limits<float>::quiet_NaN();  // of d
    return support::refusal(Failure::numerics, [&] { model.objective.predict(file); });
  };
  for (const std::int64_t batch : {1, 2, 3, 9})
    CHECK(refusal(words, File::evaluation, batch).starts_with("example 2: classifier: "));
  const std::string line = "0\tp\ta\tb\n", bad = "0\tq\ta\td\n";
  std::string lines;
  for (int i = 0; i < 37; ++i) lines += line;
  const RankingTask passages = setting.ranking({.prediction = setting.file("passages", lines + bad + line)});
  for (const std::int64_t batch : {1, 2, 9})
    CHECK(refusal(passages, File::prediction, batch).starts_with("example 37: classifier: "));
}

TEST_CASE("an example has the same loss alone and in company, and what dropout hides of it follows from its number") {
  const Setting setting;
  for (const double dropout : {0.0, 0.5}) {
    CAPTURE(dropout);
    bert::Config config = kConfig;
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout;
    const RankingTask task = setting.ranking({.train = setting.file("alike", "a\tb\tc\na\tb\tc\nd\tb\tc\n")}, config);
    Model model(task, 1);
    const NoGrad no_grad;
    const auto loss = [&](std::int64_t first, std::int64_t count, std::uint64_t key) {
      return ops::item(model.objective.loss(first, count, key).at(0).value.value());
    };
    model.objective.begin_step({.numbers = {0, 5, 2, 1}}, {.first = 0, .count = 4});
    const double of_0 = loss(0, 1, 1), of_2 = loss(2, 1, 1);
    CHECK(loss(0, 4, 1) == doctest::Approx(of_0 + loss(1, 1, 1) + of_2 + loss(3, 1, 1)).epsilon(1e-6));
    CHECK((of_0 == of_2) == (dropout == 0));  // their tokens and labels are the same
    CHECK((of_0 == loss(0, 1, 2)) == (dropout == 0));
  }
}

TEST_CASE("tasks whose rows are no single texts have no samples") {
  const Setting setting;
  const RankingTask task = setting.ranking({.evaluation = setting.candidates(4)});
  Model model(task, 2);
  model.objective.evaluate();
  CHECK_FALSE(model.objective.samples());
}
