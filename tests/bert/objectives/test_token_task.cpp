#include "bert/objectives/token_task.h"

#include <doctest/doctest.h>

#include "support/program.h"

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

TEST_CASE("the plan counts the words that are held for predictions") {
  const Setting setting;
  std::string words;
  for (int i = 0; i < 1000; ++i) words += "a\n";
  support::write_text(setting.directory / "new", words);
  tasks::TokenData data =
      tasks::read_token_data({.columns = {}, .windows = {}}, {.prediction = setting.directory / "new"},
                             {.directory = "", .problem_type = "", .labels = {"O", "X"}}, setting.tokenizer);
  const std::size_t least = 1000 * (sizeof(std::string) + 3 * sizeof(std::int64_t));  // word, line, piece and its token
  const TokenTask task(std::move(data), bert::Config{}, setting.tokenizer);
  CHECK(task.other_bytes() >= least);
  CHECK(task.other_bytes() <= 3 * least);
}
