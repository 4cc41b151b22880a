#include "bert/tasks/token_scores.h"

#include <doctest/doctest.h>

#include "io/error.h"
#include "support/sentences.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Labels = std::vector<std::int32_t>;

// 0 … 4.
const LabelSet kNames(std::vector<std::string>{"B-LOC", "B-PER", "I-LOC", "I-PER", "O"});

/// Two sentences, of three words and of two.
SentenceList list_of(const std::vector<std::string>& labels = {}) {
  return support::sentence_list({{"a", "b", "c"}, {"d", "e\tf"}}, labels);
}

JudgedWords judged(const SentenceList& list, const Labels& truth, const Labels& predicted) {
  return {.list = list, .names = kNames, .truth = truth, .predicted = predicted};
}

Labels labels_of(const WordPredictions& words) { return {words.labels.all().begin(), words.labels.all().end()}; }

}  // namespace

TEST_CASE("the tasks that label words have names") {
  CHECK(io::name_list(token_tasks()) == std::vector<std::string>{"ner", "pos", "punct", "tokens"});
  CHECK(io::find_choice(token_tasks(), "punct") == TokenTask::punct);
  CHECK_FALSE(io::find_choice(token_tasks(), "mrpc").has_value());
}

TEST_CASE("the most common label is the first of equals and has its share") {
  using Counts = std::map<std::int32_t, std::int64_t>;
  CHECK(most_common(Counts{{0, 1}, {1, 2}, {4, 2}}).label == 1);
  CHECK(most_common(Counts{{1, 1}, {4, 3}}).label == 4);
  CHECK(most_common(Counts{{1, 1}, {4, 3}}).share == 0.75F);
}

TEST_CASE("a word has the label of its first piece and a word without pieces the most common one") {
  const std::vector<std::int64_t> tokens = {0, -1, 2, 3};  // the first word has two pieces
  const Logits logits{.outputs = 2, .values = {0, 1, 9, 0, 0, 1, 1, 0}};
  const WordPredictions words = predict_words(tokens, logits, CommonLabel{.label = 0, .share = 0.5F});
  CHECK(labels_of(words) == Labels{1, 0, 1, 0});
  CHECK(words.probabilities.all()[0] == doctest::Approx(0.7310586));
  CHECK(words.probabilities.all()[1] == 0.5F);
  // Without a training file: the most common one of the predictions.
  const WordPredictions others = predict_words(tokens, logits, std::nullopt);
  CHECK(labels_of(others) == Labels{1, 1, 1, 0});
  CHECK(others.probabilities.all()[1] == doctest::Approx(2.0 / 3));
}

TEST_CASE("entities are judged as wholes and tags that continue none are counted and named") {
  const SentenceList list = list_of();
  // PER of two words is cut short. LOC of one word is right.
  const Labels truth = {1, 3, 4, 0, 4}, predicted = {1, 4, 3, 0, 3};
  const auto figures = token_figures(TokenTask::ner, judged(list, truth, predicted));
  CHECK(figures.at("eval_accuracy") == doctest::Approx(2.0 / 5));
  CHECK(figures.at("eval_precision") == doctest::Approx(1.0 / 4));
  CHECK(figures.at("eval_recall") == doctest::Approx(1.0 / 2));
  CHECK(figures.at("eval_f1") == doctest::Approx(1.0 / 3));
  CHECK(figures.at("eval_illegal_tags") == 2);
  CHECK(illegal_tags_report(judged(list, truth, predicted)) == "before\ttag\tcount\nB-LOC\tI-PER\t1\nO\tI-PER\t1\n");
  // Before the first word of a sentence stands no tag, whatever the last one before it is.
  CHECK(illegal_tags_report(judged(list, truth, {4, 4, 1, 3, 4})) == "before\ttag\tcount\nO\tI-PER\t1\n");
  CHECK(illegal_tags_report(judged(list, truth, truth)) == "before\ttag\tcount\n");
  CHECK(token_report(TokenTask::ner, judged(list, truth, predicted)) ==
        "entity\tprecision\trecall\tf1\tsupport\n"
        "LOC\t1.0000\t1.0000\t1.0000\t1\nPER\t0.0000\t0.0000\t0.0000\t1\nmicro avg\t0.2500\t0.5000\t0.3333\t2\n"
        "macro avg\t0.5000\t0.5000\t0.5000\t2\nweighted avg\t0.5000\t0.5000\t0.5000\t2\n");
}

TEST_CASE("an entity ends with its sentence") {
  const SentenceList list = list_of();
  const Labels truth = {4, 4, 1, 3, 4}, predicted = {4, 4, 1, 1, 4};
  // B-PER | I-PER over the end of a sentence are two entities.
  CHECK(token_figures(TokenTask::ner, judged(list, truth, predicted)).at("eval_f1") == 1);
}

TEST_CASE("classes of words are judged by accuracy and the mean F1 of classes") {
  const SentenceList list = list_of();
  const Labels truth = {0, 0, 1, 1, 4}, predicted = {0, 1, 1, 1, 4};
  for (const TokenTask task : {TokenTask::pos, TokenTask::tokens}) {
    const auto figures = token_figures(task, judged(list, truth, predicted));
    CHECK(figures.size() == 2);
    CHECK(figures.at("eval_accuracy") == doctest::Approx(0.8));
    CHECK(figures.at("eval_macro_f1") == doctest::Approx((2.0 / 3 + 0.8 + 1) / 3));
  }
  for (const TokenTask task : {TokenTask::pos, TokenTask::tokens, TokenTask::punct})
    CHECK(token_report(task, judged(list, truth, predicted)) ==
          "label\tprecision\trecall\tf1\tsupport\n"
          "B-LOC\t1.0000\t0.5000\t0.6667\t2\nB-PER\t0.6667\t1.0000\t0.8000\t2\nI-LOC\t0.0000\t0.0000\t0.0000\t0\n"
          "I-PER\t0.0000\t0.0000\t0.0000\t0\nO\t1.0000\t1.0000\t1.0000\t1\nmacro avg\t0.8889\t0.8333\t0.8222\t5\n"
          "weighted avg\t0.8667\t0.8000\t0.7867\t5\n\ntrue \\ predicted\tB-LOC\tB-PER\tI-LOC\tI-PER\tO\n"
          "B-LOC\t1\t1\t0\t0\t0\nB-PER\t0\t2\t0\t0\t0\nI-LOC\t0\t0\t0\t0\t0\nI-PER\t0\t0\t0\t0\t0\nO\t0\t0\t0\t0\t1\n");
}

TEST_CASE("punctuation is judged by the labels other than O") {
  const SentenceList list = list_of();
  const Labels truth = {0, 1, 4, 4, 4}, predicted = {0, 4, 4, 1, 0};
  const auto figures = token_figures(TokenTask::punct, judged(list, truth, predicted));
  CHECK(figures.at("eval_accuracy") == doctest::Approx(0.4));
  CHECK(figures.at("eval_precision") == doctest::Approx(1.0 / 3));
  CHECK(figures.at("eval_recall") == doctest::Approx(1.0 / 2));
  CHECK(figures.at("eval_f1") == doctest::Approx(0.4));
}

TEST_CASE("predictions have a row for each word in the order of the file") {
  const WordPredictions words{.labels = {4, 0, 2, 4, 4}, .probabilities = {1, 0.5F, 0.25F, 1, 1}};
  std::size_t writes = 0;
  const auto written = [&](const SentenceList& list) {
    std::string text;
    write_token_predictions_tsv(list, kNames, words, [&](auto row) {
      text += row;
      ++writes;
    });
    return text;
  };
  CHECK(written(list_of()) ==
        "sentence\tword\tprediction\tprobability\n0\ta\tO\t1\n0\tb\tB-LOC\t0.5\n0\tc\tI-LOC\t0.25\n1\td\tO\t1\n"
        "1\te f\tO\t1\n");
  CHECK(writes == 6);  // row by row: no memory is planned for all of them
  CHECK(written(list_of({"O", "O", "O", "X", "O"}))
            .starts_with("sentence\tword\tprediction\tprobability\tlabel\n0\ta\tO\t1\tO\n"));
}
