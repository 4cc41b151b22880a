// Two walks through the rows of a table: one to learn the labels and what is wrong, one to encode.
#include "bert/tasks/table_rows.h"

#include <algorithm>
#include <functional>
#include <map>

namespace bertrand::tasks {
namespace {

/// Encodes rows into a split.
class SplitWriter {
 public:
  SplitWriter(const Task& task, const TableRows::Encoding& encoding, const TableRows::Source& source, Dataset dataset)
      : task_(task),
        encoding_(encoding),
        source_(source),
        encoder_(encoding.tokenizer, encoding.max_length),
        split_{.dataset = std::move(dataset), .encoded = EncodedDataset(source.spill)},
        known_bad_(std::ssize(split_.dataset.bad_rows)) {
    split_.dataset.examples = ExampleList(source.spill);
  }

  void add(const Example& example, TableRows::Use use) {
    Dataset& dataset = split_.dataset;
    dataset.attempt(source_.on_bad, example, [&] {
      std::vector<std::int32_t> targets;
      if (use != TableRows::Use::predict) targets = targets_of(task_, encoding_.labels, dataset, example);
      encoder_.append(dataset, example, split_.encoded);
      split_.encoded.targets.append(targets);
      if (task_.kind == Kind::classification && !targets.empty()) ++split_.classes[targets[0]];
      if (use != TableRows::Use::train) dataset.examples.push_back(example);
    });
  }
  Split finish() {
    split_.encoded.finish();
    split_.dataset.examples.finish();
    split_.dataset.sort_bad_rows(known_bad_, split_.encoded.size() == 0);
    return std::move(split_);
  }

 private:
  const Task& task_;
  const TableRows::Encoding& encoding_;
  const TableRows::Source& source_;
  ExampleEncoder encoder_;
  Split split_;
  const std::ptrdiff_t known_bad_;
};

}  // namespace

TableRows::TableRows(const Task& task, Source source)
    : task_(task),
      source_(std::move(source)),
      table_(read_rows(task, source_.file, source_.on_bad, source_.spill)),
      dataset_(walk_examples(task, table_, source_.use != Use::predict, source_.on_bad, [&](const Example& example) {
        if (source_.use != Use::predict) add_labels(task_, example, names_);
      })) {
  if (source_.use != Use::predict) names_.insert(dataset_.labels.begin(), dataset_.labels.end());
}

/// Whether each example is held out, in order.
std::vector<bool> TableRows::marked(const HeldOut& part) const {
  struct Group {
    std::int32_t number = 0;
    std::int64_t rows = 0;
  };
  std::map<std::string, Group> groups;  // by label
  for (const std::string& name : names_)
    groups.emplace(name, Group{.number = static_cast<std::int32_t>(groups.size())});
  const auto for_each_row = [&](const std::function<void(const LabelNames&)>& use) {
    walk_examples(task_, table_, true, OnBadRow::keep, [&](const Example& example) {
      LabelNames labels;  // none of a choice or a score: such rows are one group
      if (!task_.has_choices()) add_labels(task_, example, labels);
      use(labels);
    });
  };
  if (task_.kind == Kind::multi_label)
    for_each_row([&](const LabelNames& labels) {
      for (const std::string& name : labels) ++groups[name].rows;
    });
  std::vector<std::int32_t> numbers;
  for_each_row([&](const LabelNames& labels) {
    const auto rarest =
        std::ranges::min_element(labels, {}, [&](const std::string& name) { return groups[name].rows; });
    numbers.push_back(rarest == labels.end() ? -1 : groups[*rarest].number);
  });
  return held_out(numbers, part, dataset_.file);
}

TableRows::Splits TableRows::encode(const Encoding& encoding, const HeldOut& part) {
  const bool holds_out = part.share > 0;
  const std::vector<bool> marked = holds_out ? this->marked(part) : std::vector<bool>();
  SplitWriter taken(task_, encoding, source_,
                    {.file = dataset_.file, .labelled = dataset_.labelled, .pairs = dataset_.pairs});
  SplitWriter rows(task_, encoding, source_, std::move(dataset_));
  std::size_t number = 0;
  // What is wrong with rows as such is known already.
  walk_examples(task_, table_, source_.use != Use::predict, OnBadRow::keep, [&](const Example& example) {
    if (holds_out && marked[number++]) taken.add(example, Use::evaluate);
    else rows.add(example, source_.use);
  });
  Splits splits{.rows = rows.finish(), .held_out = std::nullopt};
  if (holds_out) splits.held_out = taken.finish();
  return splits;
}

}  // namespace bertrand::tasks
