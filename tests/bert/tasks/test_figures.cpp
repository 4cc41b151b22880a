#include "bert/tasks/figures.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "support/refusal.h"

using namespace bertrand::tasks;

namespace {

std::string meaning(const std::vector<Figure>& figures, const std::string& name) {
  const auto found = std::ranges::find(figures, name, &Figure::name);
  return found == figures.end() ? "none" : found->meaning;
}

}  // namespace

TEST_CASE("the mean of a task's official metrics decides unless one is chosen") {
  std::vector<Figure> figures = figures_of(named_task("mrpc"));
  CHECK(deciding(figures) == "the mean of accuracy and f1");
  decide_by(figures, "eval_loss");
  CHECK(deciding(figures) == "loss (the lowest)");
  decide_by(figures, "");
  CHECK(deciding(figures) == "loss (the lowest)");
  CHECK(deciding(figures_of(TokenTask::ner)) == "f1");
  CHECK(deciding(figures_of(TokenTask::pos)) == "accuracy");
  CHECK(deciding(answer_figures(false)) == "f1");
  CHECK(deciding(ranking_figures()) == "mrr_at_10");
}

TEST_CASE("a figure that a task does not have is refused with those that it has") {
  std::vector<Figure> figures = figures_of(named_task("cola"));
  CHECK(support::refusal(bertrand::Failure::usage, [&] { decide_by(figures, "mathews"); }) ==
        "--metric-for-best-model: expected one of matthews, accuracy, loss, got mathews; did you mean matthews?");
}

TEST_CASE("what f1 is of is said with the names of two labels and the number of more") {
  const Task task = custom_task({});
  CHECK(meaning(figures_of(task, LabelSet({"bird", "fish"})), "f1") == "F1 of the label fish");
  CHECK(meaning(figures_of(task, LabelSet({"a", "b", "c"})), "f1") == "mean of the F1 of each of the 3 labels (macro)");
}
