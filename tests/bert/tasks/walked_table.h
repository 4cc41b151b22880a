// A table with its examples at hand.
#pragma once
#include <string>
#include <vector>

#include "bert/tasks/dataset.h"

namespace bertrand::tasks {

struct WalkedTable {
  Dataset dataset;
  std::vector<Example> examples;

  LabelSet labels(const Task& task) const {
    LabelNames names(dataset.labels.begin(), dataset.labels.end());
    for (const Example& example : examples) add_labels(task, example, names);
    return learn_labels(task, names, dataset.file);
  }
  std::vector<std::int32_t> targets(const Task& task, const LabelSet& labels, std::size_t number) const {
    return targets_of(task, labels, dataset, examples.at(number));
  }
};

inline WalkedTable walk_table(const Task& task, const Table& table, bool needs_label = true) {
  WalkedTable walked;
  walked.dataset = walk_examples(task, table, needs_label, OnBadRow::fail,
                                 [&](const Example& example) { walked.examples.push_back(example); });
  return walked;
}

}  // namespace bertrand::tasks
