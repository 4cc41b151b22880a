// Rows of tables as labelled examples: classes, several labels, numbers, choices, and SWAG's columns.
#include "bert/tasks/dataset.h"
#include "fuzz/fuzz.h"

using namespace bertrand;
using tasks::Kind, tasks::TableFormat;

namespace {

void check_example(const tasks::Task& task, const tasks::Dataset& place, const tasks::Example& example) {
  fuzz::require(example.choices.empty() != task.has_choices(), "choices if the task has them");
  fuzz::require(task.labels.empty() || example.choices.empty() || example.choices.size() == task.labels.size(),
                "as many choices as the task has");
  if (!example.label || task.kind != Kind::classification) return;
  // Its own label is one of those that are learnt from it, or of the task's.
  const tasks::LabelSet labels(task.labels.empty() ? std::vector{*example.label} : task.labels);
  fuzz::read_or_refuse([&] { tasks::targets_of(task, labels, place, example); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<tasks::Task> all = {tasks::custom_task({}),
                                               tasks::custom_task({.kind = Kind::multi_label}),
                                               tasks::custom_task({.kind = Kind::regression}),
                                               tasks::custom_task({.columns = {.choices = "choices"}}),
                                               tasks::custom_task({.columns = {.text = "q", .choices = "a,b"}}),
                                               tasks::named_task("swag"),
                                               tasks::named_task("mrpc")};
  for (const tasks::Task& task : all)
    for (const TableFormat format : {TableFormat::tsv, TableFormat::csv, TableFormat::jsonl})
      for (const bool lenient : {false, true})
        fuzz::read_or_refuse([&] {
          const tasks::Table table = tasks::parse_table(
              fuzz::text_of(data, size), "t", format,
              {.header = task.layouts.empty(), .skip_bad_rows = lenient, .list_separator = task.label_separator});
          const tasks::Dataset place{.file = "t"};
          std::size_t choices = 0;
          const tasks::Dataset dataset = tasks::walk_examples(
              task, table, !lenient, lenient ? tasks::OnBadRow::keep : tasks::OnBadRow::fail,
              [&](const tasks::Example& example) {
                check_example(task, place, example);
                fuzz::require(choices == 0 || choices == example.choices.size(), "as many choices in each row");
                choices = example.choices.size();
              });
          fuzz::require(!task.has_choices() || dataset.labels.size() == choices, "a name for each choice");
        });
  return 0;
}
