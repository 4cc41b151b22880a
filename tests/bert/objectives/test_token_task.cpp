#include "bert/objectives/token_task.h"

#include <doctest/doctest.h>

#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::objectives;

namespace {

/// A sentence to train on whose one long word has windows of its own, and a second sentence.
struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[UNK]\n[MASK]\n[CLS]\n[SEP]\na\n##s\n", "vocab.txt")};

  TokenTask task(tasks::TokenTask kind) const {
    support::write_text(directory / "train", "a B-X\nassssssss O\n\na I-X\na O\n");
    return {tasks::read_token_data({.task = kind, .columns = {}, .windows = {.max_length = 5, .overlap = 0}},
                                   {.train = directory / "train"}, {}, tokenizer),
            bert::Config{}, tokenizer};
  }
};

}  // namespace

TEST_CASE("the best model is chosen by F1 for entities and punctuation and by accuracy for classes") {
  const Setting setting;
  const training::Metrics metrics = {{"eval_accuracy", 0.25}, {"eval_f1", 0.5}, {"eval_macro_f1", 0.75}};
  CHECK(setting.task(tasks::TokenTask::ner).score(metrics) == 0.5);
  CHECK(setting.task(tasks::TokenTask::punct).score(metrics) == 0.5);
  CHECK(setting.task(tasks::TokenTask::pos).score(metrics) == 0.25);
  CHECK(setting.task(tasks::TokenTask::tokens).score(metrics) == 0.25);
}

TEST_CASE("the losses of a step are divided by its labelled pieces and never by none") {
  const Setting setting;
  const TokenTask task = setting.task(tasks::TokenTask::ner);
  REQUIRE(task.examples(File::train)->size() == 5);  // a a s, s s s, s s s, s, a a
  const auto divisor = [&](const std::vector<std::int64_t>& numbers) { return task.divisor(numbers); };
  CHECK(divisor({0, 1, 2, 3, 4}) == 4);
  CHECK(divisor({4, 1}) == 2);
  CHECK(divisor({2}) == 1);
}

TEST_CASE("a model that labels words has no problem of texts left") {
  const Setting setting;
  support::write_text(setting.directory / "train", "a X\na Y\n");
  const auto config_of = [&](const std::vector<std::string>& architectures, bool trains) {
    tasks::TaskFiles files;
    (trains ? files.train : files.evaluation) = setting.directory / "train";
    bert::Config config;
    config.architectures = architectures;
    config.problem_type = "regression";
    const TokenTask task(
        tasks::read_token_data({.columns = {}, .windows = {}}, files,
                               {.config = "", .problem_type = "", .labels = {"X", "Y"}}, setting.tokenizer),
        config, setting.tokenizer);
    return task.directory().config;
  };
  const std::string words = "BertForTokenClassification", texts = "BertForSequenceClassification";
  for (const bert::Config& config :
       {config_of({words}, false), config_of({texts, words}, false), config_of({}, false), config_of({texts}, true)}) {
    CHECK(config.architectures == std::vector<std::string>{words});
    CHECK(config.problem_type.empty());
  }
}

TEST_CASE("samples are sentences evenly spread over the file, with the labels other than O that they have and get") {
  const Setting setting;
  support::write_text(setting.directory / "dev", "a B-X\na I-X\n\na O\n\na I-X\na O\n\na B-X\n\n");
  tasks::TokenData data = tasks::read_token_data(
      {.task = tasks::TokenTask::ner, .columns = {}, .windows = {}}, {.evaluation = setting.directory / "dev"},
      {.config = "", .problem_type = "", .labels = {"O", "B-X", "I-X"}}, setting.tokenizer);
  const TokenTask task(std::move(data), bert::Config{}, setting.tokenizer);
  REQUIRE(task.examples(File::evaluation)->token_ids.size() == 6 + 4 * 2);
  tasks::Logits outputs{.outputs = 3, .values = {}};  // all words are taken for B-X but the last one, which is O
  for (int token = 0; token < 14; ++token) outputs.values.append(std::vector<float>{token == 12 ? 2.0F : 0.0F, 1, 0});
  const std::vector<FineTuningTask::Sample> samples = task.samples(outputs, 2);
  REQUIRE(samples.size() == 2);
  CHECK(samples[0].text == "a a");
  CHECK(samples[0].truth == "a B-X, a I-X");
  CHECK(samples[0].prediction == "a B-X, a B-X");
  CHECK(samples[1].text == "a a");
  CHECK(samples[1].truth == "a I-X");
  CHECK(samples[1].prediction == "a B-X, a B-X");
  const std::vector<FineTuningTask::Sample> all = task.samples(outputs, 10);
  REQUIRE(all.size() == 4);
  CHECK(all[1].truth == "");
  CHECK(all[3].truth == "a B-X");
  CHECK(all[3].prediction == "");
}

TEST_CASE("the plan counts the words that are held for predictions") {
  const Setting setting;
  std::string words;
  for (int i = 0; i < 1000; ++i) words += "a\n";
  support::write_text(setting.directory / "new", words);
  tasks::TokenData data =
      tasks::read_token_data({.columns = {}, .windows = {}}, {.prediction = setting.directory / "new"},
                             {.config = "", .problem_type = "", .labels = {"O", "X"}}, setting.tokenizer);
  const std::size_t least = 1000 * (1 + sizeof(std::int64_t));  // a word, and its token
  const TokenTask task(std::move(data), bert::Config{}, setting.tokenizer);
  CHECK(task.other_bytes() >= least);
  CHECK(task.other_bytes() <= 5 * least);
}

TEST_CASE("what is predicted of words is in the files of an evaluation and of a prediction") {
  const Setting setting;
  support::write_text(setting.directory / "dev", "a B-X\na I-X\n\na O\nas O\n");
  tasks::TokenData data =
      tasks::read_token_data({.task = tasks::TokenTask::ner, .columns = {}, .windows = {}},
                             {.evaluation = setting.directory / "dev", .prediction = setting.directory / "dev"},
                             {.config = "", .problem_type = "", .labels = {"O", "B-X", "I-X"}}, setting.tokenizer);
  const TokenTask task(std::move(data), bert::Config{}, setting.tokenizer);
  tasks::Logits outputs{.outputs = 3, .values = {}};
  const std::vector<float> none = {0, 0, 0}, b_x = {0, 99, 0}, i_x = {0, 0, 99}, half_o = {0, 0, -99};
  for (const auto& row : {none, b_x, i_x, none, none, half_o, i_x, b_x, none})  // [CLS] a a [SEP] [CLS] a a ##s [SEP]
    outputs.values.append(row);
  task.write_evaluation(io::Files::system(), setting.directory / "", outputs);
  CHECK(task.write_predictions(io::Files::system(), setting.directory / "", outputs) ==
        (setting.directory / "predictions.tsv").string() + ": predictions of 4 words in 2 sentences");
  const auto file = [&](const char* name) { return support::read_text(setting.directory / name); };
  CHECK(file("eval_rows.jsonl") == R"({"task":"ner","kind":"words","rows":2,"labels":["O","B-X","I-X"]}
{"id":"0","words":["a","a"],"label":[1,2],"prediction":[1,2],"probabilities":[1.0,1.0]}
{"id":"1","words":["a","as"],"label":[0,0],"prediction":[0,2],"probabilities":[0.5,1.0]}
)");
  CHECK(file("eval_report.tsv") ==
        "entity\tprecision\trecall\tf1\tsupport\nX\t0.5000\t1.0000\t0.6667\t1\n"
        "micro avg\t0.5000\t1.0000\t0.6667\t1\nmacro avg\t0.5000\t1.0000\t0.6667\t1\n"
        "weighted avg\t0.5000\t1.0000\t0.6667\t1\n");
  CHECK(file("eval_illegal_tags.tsv") == "before\ttag\tcount\nO\tI-X\t1\n");
  CHECK(file("predictions.tsv") ==
        "sentence\tword\tprediction\tprobability\tlabel\n0\ta\tB-X\t1\tB-X\n0\ta\tI-X\t1\tI-X\n"
        "1\ta\tO\t0.5\tO\n1\tas\tI-X\t1\tO\n");
}
