#include "bert/tasks/training_rows.h"

#include <bit>
#include <map>

namespace bertrand::tasks {
namespace {

void append(const Target& target, Spillable<std::int32_t>& to) {
  if (const auto* label = std::get_if<std::int32_t>(&target)) return to.push_back(*label);
  if (const auto* number = std::get_if<float>(&target)) return to.push_back(std::bit_cast<std::int32_t>(*number));
  for (const float flag : std::get<std::vector<float>>(target)) to.push_back(flag != 0);
}

}  // namespace

TrainingRows::TrainingRows(const Task& task, const TaskFiles& files)
    : task_(task),
      files_(files),
      table_(read_rows(task, files.train.string(), files.on_bad, files.spill)),
      dataset_(walk_examples(task, table_, true, files.on_bad,
                             [&](Example&& example) { add_labels(task_, example, names_); })) {}

/// Of the examples in order, which are held out.
std::vector<bool> TrainingRows::marked() const {
  std::map<std::string, std::int32_t> numbers;  // of labels; rows with several, or a score, are all alike
  if (task_.kind == Kind::classification)
    for (const std::string& name : names_) numbers.emplace(name, static_cast<std::int32_t>(numbers.size()));
  std::vector<std::int32_t> groups;
  walk_examples(task_, table_, true, OnBadRow::keep, [&](Example&& example) {
    const auto found = numbers.find(*example.label);
    groups.push_back(found == numbers.end() ? 0 : found->second);
  });
  return held_out(groups, files_.held_out, dataset_.file);
}

Split TrainingRows::encode(const LabelSet& labels, const text::Tokenizer& tokenizer, int max_length,
                           std::optional<Split>& taken) {
  const bool holds_out = files_.held_out.share > 0;
  const std::vector<bool> marked = holds_out ? this->marked() : std::vector<bool>();
  if (holds_out)
    taken = Split{.dataset = {.file = dataset_.file, .labelled = true, .pairs = dataset_.pairs}, .encoded = {}};
  Split split{.dataset = std::move(dataset_), .encoded = EncodedDataset(files_.spill)};
  const auto before = std::ssize(split.dataset.bad_rows);
  ExampleEncoder encoder(tokenizer, max_length);
  std::size_t number = 0;
  // What is wrong with rows as such is known already.
  walk_examples(task_, table_, true, OnBadRow::keep, [&](Example&& example) {
    if (holds_out && marked[number++]) return taken->dataset.examples.push_back(std::move(example));
    split.dataset.attempt(files_.on_bad, example, [&] {
      const Target target = target_of(task_, labels, split.dataset, example);
      encoder.append(split.dataset, example, split.encoded);
      append(target, split.encoded.targets);
    });
  });
  split.encoded.finish();
  split.dataset.sort_bad_rows(before, split.encoded.size() == 0);
  return split;
}

}  // namespace bertrand::tasks
