// The steps and the evaluation of fine-tuning.
#include "bert/objectives/classification.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "distributed/replica.h"
#include "io/error.h"

namespace bertrand::objectives {
namespace {

/// Adds the `count` longest examples of `split`, or all if it has fewer, to `to`, the longest first.
void add_longest(const tasks::Split& split, std::int64_t count, tasks::Split& to) {
  const tasks::EncodedDataset& from = split.encoded;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(from.size()));
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto end = numbers.begin() + std::min(count, from.size());
  std::partial_sort(numbers.begin(), end, numbers.end(),
                    [&](std::int64_t a, std::int64_t b) { return from.tokens(a) > from.tokens(b); });
  for (const std::int64_t number : std::span(numbers.begin(), end)) {
    const std::span<const std::int32_t> ids = from.ids(number);
    to.encoded.token_ids.insert(to.encoded.token_ids.end(), ids.begin(), ids.end());
    to.encoded.offsets.push_back(std::ssize(to.encoded.token_ids));
    to.encoded.first_lengths.push_back(from.first_lengths[static_cast<std::size_t>(number)]);
    to.dataset.examples.push_back(split.dataset.examples[static_cast<std::size_t>(number)]);
  }
}

/// The longest examples to train on, and as `prediction` the longest of those that are evaluated and of those that are
/// predicted.
tasks::TaskData longest(const tasks::TaskData& data, std::int64_t count) {
  tasks::TaskData longest{
      .task = data.task, .labels = data.labels, .train = tasks::Split{}, .prediction = tasks::Split{}};
  add_longest(*data.train, count, *longest.train);
  for (const std::optional<tasks::Split>* split : {&data.evaluation, &data.prediction})
    if (*split) add_longest(**split, count, *longest.prediction);
  return longest;
}

/// A base class, because the data must be there before the objective.
struct LongestData {
  tasks::TaskData data;
};

class LargestClassification : private LongestData, public ClassificationObjective {
 public:
  LargestClassification(tasks::TaskData longest, const Inputs& inputs, const distributed::Replica& self)
      : LongestData{std::move(longest)},
        ClassificationObjective({data, inputs.config, inputs.tokenizer, inputs.prediction_batch}, self) {}

  training::Metrics evaluate() override {
    predict(data.prediction->encoded);
    return {};
  }
};

}  // namespace

ClassificationObjective::ClassificationObjective(const Inputs& inputs, const distributed::Replica& self)
    : inputs_(inputs), self_(self), model_(inputs.config, inputs.data.outputs()) {}

std::int64_t ClassificationObjective::examples(std::int64_t) { return inputs_.data.train->encoded.size(); }

std::int64_t ClassificationObjective::tokens(std::int64_t, std::int64_t example) const {
  return inputs_.data.train->encoded.tokens(example);
}

std::int64_t ClassificationObjective::begin_step(const training::StepExamples& step, const distributed::Share&) {
  numbers_ = step.numbers;
  std::int64_t sum = 0;
  for (const std::int64_t number : numbers_) sum += tokens(step.epoch, number);
  return sum;
}

std::vector<training::LossPart> ClassificationObjective::loss(std::int64_t first, std::int64_t count,
                                                              std::uint64_t key) {
  const tasks::Split& train = *inputs_.data.train;
  const auto numbers = std::span(numbers_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  const bert::PackedBatch batch = pack_examples(train.encoded, numbers, self_.backend());
  const Variable logits = model_(batch, batch.randomness(key));
  return {{"loss", task_loss(inputs_.data.task.kind, logits, train.dataset, numbers,
                             static_cast<std::int64_t>(numbers_.size()))}};
}

training::Metrics ClassificationObjective::evaluate() {
  if (!inputs_.data.evaluation) return {};
  const tasks::Split& held_out = *inputs_.data.evaluation;
  const tasks::Logits logits = predict(held_out.encoded);
  training::Metrics metrics;
  for (const auto& [name, value] : tasks::evaluate(inputs_.data.task, logits, held_out.dataset.examples))
    metrics.push_back({name, value});
  return metrics;
}

std::optional<double> ClassificationObjective::score(const training::Metrics& evaluation) const {
  if (evaluation.empty()) return std::nullopt;
  std::map<std::string, double> results;
  for (const training::Metric& metric : evaluation) results[metric.name] = metric.value;
  return tasks::selection_score(inputs_.data.task, results);
}

std::unique_ptr<training::Objective> ClassificationObjective::largest(const distributed::Replica& self,
                                                                      std::int64_t count) const {
  Inputs inputs = inputs_;
  inputs.prediction_batch = count;
  return std::make_unique<LargestClassification>(longest(inputs_.data, count), inputs, self);
}

bert::DirectoryFiles ClassificationObjective::directory() const {
  return {.config = inputs_.config,
          .vocabulary = inputs_.tokenizer.vocabulary().text(),
          .tokenizer = inputs_.tokenizer.options()};
}

std::size_t ClassificationObjective::data_bytes() const {
  std::size_t bytes = 0;
  for (const std::optional<tasks::Split>* split :
       {&inputs_.data.train, &inputs_.data.evaluation, &inputs_.data.prediction})
    if (*split) bytes += (*split)->encoded.bytes();
  return bytes;
}

}  // namespace bertrand::objectives
