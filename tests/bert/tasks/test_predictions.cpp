#include <doctest/doctest.h>

#include "bert/tasks/predictions.h"

using namespace bertrand::tasks;

namespace {

std::string predictions(const Task& task, const LabelSet& labels, const Dataset& dataset, const Logits& logits) {
  std::string text;
  write_predictions_tsv(task, labels, dataset, logits, [&](std::string_view part) { text += part; });
  return text;
}

}  // namespace

TEST_CASE("predictions of a classification: id, label name, a probability per label, the file's label, and the text") {
  const Task task = named_task("rte");
  Dataset data{.labelled = true,
               .pairs = true,
               .examples = {{.id = "4", .text_a = "x", .text_b = "y", .label = "entailment"},
                            {.id = "5", .text_a = "u\tv", .text_b = "w", .label = "not_entailment"}}};
  const Logits logits{.outputs = 2, .values = {0, 0, -1, 1}};
  CHECK(predictions(task, LabelSet(task.labels), data, logits) ==
        "id\tprediction\tprobability_entailment\tprobability_not_entailment\tlabel\tprobability\ttext\ttext_pair\n"
        "4\tentailment\t0.5\t0.5\tentailment\t0.5\tx\ty\n"
        "5\tnot_entailment\t0.11920292\t0.8807971\tnot_entailment\t0.8807971\tu v\tw\n");
  data.labelled = false;
  CHECK(predictions(task, LabelSet(task.labels), data, logits)
            .starts_with(
                "id\tprediction\tprobability_entailment\tprobability_not_entailment\tprobability\ttext\ttext_pair\n"
                "4\tentailment\t0.5\t0.5\t0.5\tx\ty\n"));
}

TEST_CASE("predictions of a regression are numbers that read back to the same float") {
  const Dataset data{.examples = {{.id = "a"}, {.id = "b"}}};
  CHECK(predictions(named_task("stsb"), {}, data, {.outputs = 1, .values = {2.5f, 0.1f}}) ==
        "id\tprediction\ttext\na\t2.5\t\nb\t0.1\t\n");
}

TEST_CASE("predictions of several labels name those of at least one half") {
  const Task task = custom_task({.kind = Kind::multi_label});
  const Dataset data{.labelled = true, .examples = {{.id = "a", .label = ""}, {.id = "b\tc", .label = "y"}}};
  CHECK(predictions(task, LabelSet({"x", "y"}), data, {.outputs = 2, .values = {-1, -1, 0, 1}}) ==
        "id\tprediction\tprobability_x\tprobability_y\tlabel\ttext\n"
        "a\t\t0.26894143\t0.26894143\t\t\n"
        "b c\tx,y\t0.5\t0.7310586\ty\t\n");
}
