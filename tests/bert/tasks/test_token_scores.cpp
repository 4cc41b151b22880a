#include "bert/tasks/token_scores.h"

#include <doctest/doctest.h>

#include "io/error.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Labels = std::vector<std::int32_t>;

// 0 … 4.
const LabelSet kNames(std::vector<std::string>{"B-LOC", "B-PER", "I-LOC", "I-PER", "O"});

/// Two sentences, of three words and of two.
TokenFile file_of(std::vector<std::string> labels = {}) {
  return {.file = "f", .words = {"a", "b", "c", "d", "e\tf"}, .labels = std::move(labels), .offsets = {0, 3, 5}};
}

JudgedWords judged(const TokenFile& file, const Labels& truth, const Labels& predicted) {
  return {.file = file, .names = kNames, .truth = truth, .predicted = predicted};
}

/// A word for each entry, with so many pieces; rows[i] is the label of token i.
EncodedSentences words_of(const std::vector<std::int64_t>& pieces) {
  EncodedSentences sentences;
  for (const std::int64_t count : pieces) {
    for (std::int64_t i = 0; i < count; ++i) sentences.piece_tokens.push_back(std::ssize(sentences.piece_tokens));
    sentences.first_pieces.push_back(sentences.first_pieces.back() + count);
  }
  return sentences;
}

}  // namespace

TEST_CASE("the tasks that label words have names") {
  CHECK(io::name_list(token_tasks()) == std::vector<std::string>{"ner", "pos", "punct", "tokens"});
  CHECK(io::find_choice(token_tasks(), "punct") == TokenTask::punct);
  CHECK_FALSE(io::find_choice(token_tasks(), "mrpc").has_value());
}

TEST_CASE("the most common label is the first of equals and has its share") {
  CHECK(most_common(Labels{4, 1, 4, 1, 0}).label == 1);
  CHECK(most_common(Labels{4, 1, 4, 4}).label == 4);
  CHECK(most_common(Labels{4, 1, 4, 4}).share == 0.75F);
}

TEST_CASE("a word has the label of its first piece and a word without pieces the most common one") {
  const EncodedSentences sentences = words_of({2, 0, 1, 1});
  const Logits logits{.outputs = 2, .values = {0, 1, 9, 0, 0, 1, 1, 0}};
  const WordPredictions words = predict_words(sentences, logits, CommonLabel{.label = 0, .share = 0.5F});
  CHECK(words.labels == Labels{1, 0, 1, 0});
  CHECK(words.probabilities[0] == doctest::Approx(0.7310586));
  CHECK(words.probabilities[1] == 0.5F);
  // Without a training file: the most common one of the predictions.
  const WordPredictions others = predict_words(sentences, logits, std::nullopt);
  CHECK(others.labels == Labels{1, 1, 1, 0});
  CHECK(others.probabilities[1] == doctest::Approx(2.0 / 3));
}

TEST_CASE("entities are judged as wholes and tags that continue none are counted and named") {
  const TokenFile file = file_of();
  // PER of two words is cut short. LOC of one word is right.
  const Labels truth = {1, 3, 4, 0, 4}, predicted = {1, 4, 3, 0, 3};
  const auto figures = token_figures(TokenTask::ner, judged(file, truth, predicted));
  CHECK(figures.at("eval_accuracy") == doctest::Approx(2.0 / 5));
  CHECK(figures.at("eval_precision") == doctest::Approx(1.0 / 4));
  CHECK(figures.at("eval_recall") == doctest::Approx(1.0 / 2));
  CHECK(figures.at("eval_f1") == doctest::Approx(1.0 / 3));
  CHECK(figures.at("eval_illegal_tags") == 2);
  CHECK(illegal_tags_report(judged(file, truth, predicted)) == "before\ttag\tcount\nB-LOC\tI-PER\t1\nO\tI-PER\t1\n");
  // Before the first word of a sentence stands no tag, whatever the last one before it is.
  CHECK(illegal_tags_report(judged(file, truth, {4, 4, 1, 3, 4})) == "before\ttag\tcount\nO\tI-PER\t1\n");
  CHECK(illegal_tags_report(judged(file, truth, truth)) == "before\ttag\tcount\n");
  CHECK(token_report(TokenTask::ner, judged(file, truth, predicted)) ==
        "entity\tprecision\trecall\tf1\tsupport\n"
        "LOC\t1.0000\t1.0000\t1.0000\t1\nPER\t0.0000\t0.0000\t0.0000\t1\nmicro avg\t0.2500\t0.5000\t0.3333\t2\n"
        "macro avg\t0.5000\t0.5000\t0.5000\t2\nweighted avg\t0.5000\t0.5000\t0.5000\t2\n");
}

TEST_CASE("an entity ends with its sentence") {
  const TokenFile file = file_of();
  const Labels truth = {4, 4, 1, 3, 4}, predicted = {4, 4, 1, 1, 4};
  // B-PER | I-PER over the end of a sentence are two entities.
  CHECK(token_figures(TokenTask::ner, judged(file, truth, predicted)).at("eval_f1") == 1);
}

TEST_CASE("classes of words are judged by accuracy and the mean F1 of classes") {
  const TokenFile file = file_of();
  const Labels truth = {0, 0, 1, 1, 4}, predicted = {0, 1, 1, 1, 4};
  for (const TokenTask task : {TokenTask::pos, TokenTask::tokens}) {
    const auto figures = token_figures(task, judged(file, truth, predicted));
    CHECK(figures.size() == 2);
    CHECK(figures.at("eval_accuracy") == doctest::Approx(0.8));
    CHECK(figures.at("eval_macro_f1") == doctest::Approx((2.0 / 3 + 0.8 + 1) / 3));
  }
  for (const TokenTask task : {TokenTask::pos, TokenTask::tokens, TokenTask::punct})
    CHECK(token_report(task, judged(file, truth, predicted)) ==
          "label\tprecision\trecall\tf1\tsupport\n"
          "B-LOC\t1.0000\t0.5000\t0.6667\t2\nB-PER\t0.6667\t1.0000\t0.8000\t2\nI-LOC\t0.0000\t0.0000\t0.0000\t0\n"
          "I-PER\t0.0000\t0.0000\t0.0000\t0\nO\t1.0000\t1.0000\t1.0000\t1\nmacro avg\t0.8889\t0.8333\t0.8222\t5\n"
          "weighted avg\t0.8667\t0.8000\t0.7867\t5\n\ntrue \\ predicted\tB-LOC\tB-PER\tI-LOC\tI-PER\tO\n"
          "B-LOC\t1\t1\t0\t0\t0\nB-PER\t0\t2\t0\t0\t0\nI-LOC\t0\t0\t0\t0\t0\nI-PER\t0\t0\t0\t0\t0\nO\t0\t0\t0\t0\t1\n");
}

TEST_CASE("punctuation is judged by the labels other than O") {
  const TokenFile file = file_of();
  const Labels truth = {0, 1, 4, 4, 4}, predicted = {0, 4, 4, 1, 0};
  const auto figures = token_figures(TokenTask::punct, judged(file, truth, predicted));
  CHECK(figures.at("eval_accuracy") == doctest::Approx(0.4));
  CHECK(figures.at("eval_precision") == doctest::Approx(1.0 / 3));
  CHECK(figures.at("eval_recall") == doctest::Approx(1.0 / 2));
  CHECK(figures.at("eval_f1") == doctest::Approx(0.4));
}

TEST_CASE("predictions have a row for each word in the order of the file") {
  const WordPredictions words{.labels = {4, 0, 2, 4, 4}, .probabilities = {1, 0.5F, 0.25F, 1, 1}};
  std::size_t writes = 0;
  const auto written = [&](const TokenFile& file) {
    std::string text;
    write_token_predictions_tsv(file, kNames, words, [&](auto row) {
      text += row;
      ++writes;
    });
    return text;
  };
  CHECK(written(file_of()) ==
        "sentence\tword\tprediction\tprobability\n0\ta\tO\t1\n0\tb\tB-LOC\t0.5\n0\tc\tI-LOC\t0.25\n1\td\tO\t1\n"
        "1\te f\tO\t1\n");
  CHECK(writes == 6);  // row by row: no memory is planned for all of them
  CHECK(written(file_of({"O", "O", "O", "X", "O"}))
            .starts_with("sentence\tword\tprediction\tprobability\tlabel\n0\ta\tO\t1\tO\n"));
}
