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

TEST_CASE("what f1 is of is said with the names of two labels, and of more with those that the mean leaves out") {
  const Task task = custom_task({});
  CHECK(meaning(figures_of(task, LabelSet({"bird", "fish"})), "f1") == "F1 of the label fish");
  const std::string mean = "mean of the F1 of each label that is true or predicted (macro)";
  CHECK(meaning(figures_of(task, LabelSet({"a", "b", "c"})), "f1") == mean);
  CHECK(meaning(figures_of(TokenTask::pos), "macro_f1") == mean);
  CHECK(meaning(figures_of(custom_task({.kind = Kind::multi_label})), "macro_f1") ==
        "mean of the F1 of each label (macro)");
}

TEST_CASE("what accuracy, loss and f1 are of follows from the kind of the task") {
  const auto says = [](const std::vector<Figure>& figures, const std::string& name, const std::string& part) {
    return meaning(figures, name).find(part) != std::string::npos;
  };
  const auto of = [](Kind kind) { return figures_of(custom_task({.kind = kind})); };
  CHECK(says(of(Kind::multi_label), "accuracy", "every label"));
  CHECK_FALSE(says(of(Kind::classification), "accuracy", "every label"));
  CHECK(says(of(Kind::regression), "loss", "squared error"));
  CHECK(says(of(Kind::multi_label), "loss", "binary cross-entropy"));
  CHECK_FALSE(says(of(Kind::classification), "loss", "binary"));
  CHECK(says(figures_of(TokenTask::ner), "f1", "entities"));
  CHECK(says(figures_of(TokenTask::punct), "f1", "other than O"));
}

TEST_CASE("each figure of a task can pick the best model, and one of another task cannot") {
  for (const std::string name : {"f1", "exact_match", "has_answer_f1", "has_answer_exact", "no_answer_f1",
                                 "no_answer_exact", "best_f1", "best_exact"}) {
    std::vector<Figure> figures = answer_figures(true);
    decide_by(figures, name);
    CHECK(deciding(figures) == name);
  }
  std::vector<Figure> entities = figures_of(TokenTask::ner);
  decide_by(entities, "illegal_tags");
  CHECK(deciding(entities) == "illegal_tags (the lowest)");
  const auto refused = [](std::vector<Figure> figures, const std::string& name) {
    return support::refusal(bertrand::Failure::usage, [&] { decide_by(figures, name); }) != "";
  };
  CHECK(refused(answer_figures(false), "has_answer_f1"));
  CHECK(refused(figures_of(TokenTask::punct), "illegal_tags"));
}
