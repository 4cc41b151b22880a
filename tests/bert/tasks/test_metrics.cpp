// The expected figures come from numpy, SciPy and PyTorch on the same inputs.
#include <doctest/doctest.h>

#include <bit>

#include "bert/tasks/metrics.h"
#include "support/refusal.h"

using namespace bertrand::tasks;

namespace {

using Ints = std::vector<std::int32_t>;
using Doubles = std::vector<double>;

doctest::Approx near(double value) { return doctest::Approx(value).epsilon(1e-14); }

Ints bits_of(const std::vector<float>& scores) {
  Ints bits;
  for (const float score : scores) bits.push_back(std::bit_cast<std::int32_t>(score));
  return bits;
}

}  // namespace

TEST_CASE("the figures of two classes are those of their definitions") {
  const Ints predicted = {1, 0, 1, 1, 0, 1, 0, 0, 1, 1}, truth = {1, 0, 0, 1, 1, 1, 0, 1, 1, 0};
  CHECK(accuracy(predicted, truth) == near(0.6));
  CHECK(f1(predicted, truth) == near(2.0 / 3));
  CHECK(matthews(predicted, truth) == near(1.0 / 6));
}

TEST_CASE("the figures of four classes are those of numpy") {
  const Ints predicted = {0, 2, 1, 2, 1, 0, 0, 3}, truth = {0, 1, 1, 2, 2, 0, 2, 3};
  CHECK(accuracy(predicted, truth) == near(0.625));
  CHECK(macro_f1(predicted, truth) == near(0.675));
  CHECK(matthews(predicted, truth) == near(0.5));
}

TEST_CASE("Pearson's and Spearman's correlations are SciPy's, with ties") {
  const Doubles x = {1.5, 2.0, 2.0, 3.25, -1.0, 4.0, 2.0, 0.5}, y = {0.0, 2.5, 1.0, 5.0, 1.0, 4.5, 3.0, 0.25};
  CHECK(pearson(x, y) == near(0.7607480806211102));
  CHECK(spearman(x, y) == near(0.8099531445617965));
}

TEST_CASE("the largest numbers come first, of equal ones the first") {
  const Doubles values = {1, 3, 2, 3, 2, 3};
  CHECK(largest(values, 4) == std::vector<std::size_t>{1, 3, 5, 2});
  CHECK(largest(values, 9) == std::vector<std::size_t>{1, 3, 5, 2, 4, 0});
  CHECK(largest({}, 2).empty());
}

TEST_CASE("what is undefined counts as 0") {
  const Ints zeros = {0, 0, 0}, mixed = {0, 1, 0};
  CHECK(matthews(zeros, mixed) == 0);
  CHECK(matthews(zeros, zeros) == 0);
  CHECK(f1(zeros, zeros) == 0);
  const Doubles constant = {2, 2, 2}, rising = {1, 2, 3};
  CHECK(pearson(constant, rising) == 0);
  CHECK(spearman(constant, rising) == 0);
}

TEST_CASE("several labels a row: share of equal rows, micro and macro F1") {
  const Ints predicted = {1, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 0}, truth = {1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0};
  const MultiLabelScores scores = multi_label_scores(predicted, truth, 3);
  CHECK(scores.accuracy == near(0.5));
  CHECK(scores.micro_f1 == near(2.0 / 3));
  CHECK(scores.macro_f1 == near(0.4888888888888889));
}

TEST_CASE("losses in double are PyTorch's") {
  const Logits logits{.outputs = 3, .values = {1.5f, -0.25f, 0.75f, 0.f, 2.f, -3.f}};
  CHECK(mean_loss(Kind::classification, logits, Ints{2, 1}) == near(0.6906393442353628));
  CHECK(mean_loss(Kind::multi_label, logits, Ints{1, 0, 1, 0, 0, 1}) == near(1.1721477078588591));
  CHECK(mean_loss(Kind::regression, {.outputs = 1, .values = {1.5f, -0.25f}}, bits_of({2, 1})) == near(0.90625));
}

TEST_CASE("a loss of large logits stays finite") {
  const Logits logits{.outputs = 2, .values = {1e4f, -1e4f}};
  CHECK(mean_loss(Kind::classification, logits, Ints{1}) == near(2e4));
  CHECK(mean_loss(Kind::multi_label, logits, Ints{0, 1}) == near(1e4));
}

TEST_CASE("a task's results carry its official metrics and eval_loss") {
  const Logits logits{.outputs = 2, .values = {0, 1, 1, 0, 0, 1, 1, 0}};
  const auto results = evaluate(named_task("mrpc"), logits, Ints{1, 0, 0, 1});
  Task turned = named_task("mrpc");
  turned.positive = 0;  // of a model whose label "1" has the number 0
  CHECK(evaluate(turned, logits, Ints{0, 0, 0, 1}).at("eval_f1") !=
        near(evaluate(named_task("mrpc"), logits, Ints{0, 0, 0, 1}).at("eval_f1")));
  REQUIRE(results.size() == 3);
  CHECK(results.at("eval_accuracy") == near(0.5));
  CHECK(results.at("eval_f1") == near(0.5));
  CHECK(results.at("eval_loss") > 0);

  CHECK(evaluate(named_task("cola"), logits, Ints{1, 0, 0, 1}).count("eval_matthews") == 1);
  const Logits scores{.outputs = 1, .values = {1, 2, 3}};
  const auto regression = evaluate(named_task("stsb"), scores, bits_of({1, 2, 4}));
  CHECK(regression.at("eval_pearson") == near(0.9819805060619657));
  CHECK(regression.at("eval_spearman") == near(1.0));
}

TEST_CASE("the first of equal outputs is the prediction") {
  const std::vector<float> row = {0, 2, 2};
  CHECK(arg_max(row) == 1);
}

TEST_CASE("a label applies where its output is 0, a probability of one half, and not below") {
  CHECK(decisions(Kind::multi_label, {.outputs = 2, .values = {0, -1e-6F, 1e-6F, -1}}) == Ints{1, 0, 1, 0});
}

TEST_CASE("there is no figure of no row at all") {
  const Ints none;
  const Doubles no_numbers;
  const auto refused = [](const auto& figure) { return support::refusal(bertrand::Failure::bug, figure) != ""; };
  CHECK(refused([&] { accuracy(none, none); }));
  CHECK(refused([&] { f1(none, none); }));
  CHECK(refused([&] { macro_f1(none, none); }));
  CHECK(refused([&] { matthews(none, none); }));
  CHECK(refused([&] { pearson(no_numbers, no_numbers); }));
  CHECK(refused([&] { multi_label_scores(none, none, 2); }));
  CHECK(refused([&] { mean_loss(Kind::classification, {.outputs = 2, .values = {}}, none); }));
  CHECK(accuracy(Ints{1}, Ints{1}) == 1);
}

TEST_CASE("shares of large outputs stay finite") {
  CHECK(softmax(std::vector<float>{1e4F, -1e4F}) == Doubles{1, 0});
  CHECK(softmax(std::vector<float>{-1e4F, -1e4F}) == Doubles{0.5, 0.5});
}
