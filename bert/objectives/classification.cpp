#include "bert/objectives/classification.h"

#include "distributed/replica.h"
#include "io/error.h"

namespace bertrand::objectives {

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
  const tasks::Logits logits = predict(model_, held_out.encoded, self_);
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

bert::DirectoryFiles ClassificationObjective::directory() const {
  return {.config = inputs_.config,
          .vocabulary = inputs_.tokenizer.vocabulary().text(),
          .lower_case = inputs_.tokenizer.options().lower_case};
}

std::size_t ClassificationObjective::data_bytes() const {
  std::size_t bytes = 0;
  for (const std::optional<tasks::Split>* split :
       {&inputs_.data.train, &inputs_.data.evaluation, &inputs_.data.prediction})
    if (*split) bytes += (*split)->encoded.bytes();
  return bytes;
}

}  // namespace bertrand::objectives
