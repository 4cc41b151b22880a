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

TEST_CASE("predictions of more than a megabyte have each row once") {
  Dataset data;
  Logits logits{.outputs = 1, .values = {}};
  std::string expected = "id\tprediction\ttext\n";
  for (int i = 0; i < 5; ++i) {
    const std::string id = std::to_string(i), text(300'000, static_cast<char>('a' + i));
    data.examples.push_back({.id = id, .text_a = text});
    logits.values.push_back(static_cast<float>(i) + 0.5F);
    expected += id + "\t" + id + ".5\t" + text + "\n";
  }
  CHECK((predictions(named_task("stsb"), {}, data, logits) == expected));
}

TEST_CASE("a bad row stands among the predictions where it stands in the file, with its id alone") {
  const Task task = named_task("sst2");
  const Dataset data{
      .labelled = true,
      .examples = {{.id = "1", .text_a = "x", .label = "0", .line = 3}},
      .bad_rows = {{.line = 2, .id = "0", .message = "bad"}, {.line = 4, .id = "2\t3", .message = "bad"}}};
  CHECK(predictions(task, LabelSet(task.labels), data, {.outputs = 2, .values = {0, 0}}) ==
        "id\tprediction\tprobability_0\tprobability_1\tlabel\tprobability\ttext\n"
        "0\t\t\t\t\t\t\n"
        "1\t0\t0.5\t0.5\t0\t0.5\tx\n"
        "2 3\t\t\t\t\t\t\n");
}
