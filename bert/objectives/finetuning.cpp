// The steps and the evaluation of fine-tuning.
#include "bert/objectives/finetuning.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "distributed/exchange.h"
#include "io/error.h"
#include "io/signals.h"

namespace bertrand::objectives {
namespace {

/// The `count` longest examples, or all if there are fewer, the longest first.
std::vector<std::int64_t> longest(const tasks::EncodedDataset& examples, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(examples.size()));
  std::iota(numbers.begin(), numbers.end(), 0);
  const auto end = numbers.begin() + std::min(count, examples.size());
  std::partial_sort(numbers.begin(), end, numbers.end(),
                    [&](std::int64_t a, std::int64_t b) { return examples.tokens(a) > examples.tokens(b); });
  numbers.erase(end, numbers.end());
  return numbers;
}

/// Example i of the plan is the i-th longest of the training file.
class LargestFineTuning : public FineTuningObjective {
 public:
  LargestFineTuning(const FineTuningTask& task, std::int64_t count, const distributed::Replica& self)
      : FineTuningObjective(task, count, self), longest_(longest(*task.examples(File::train), count)) {}

  std::int64_t examples(std::int64_t) override { return std::ssize(longest_); }
  std::int64_t begin_step(const training::StepExamples& step, const distributed::Share& mine) override {
    training::StepExamples real = step;
    for (std::int64_t& number : real.numbers) number = longest_[static_cast<std::size_t>(number)];
    return FineTuningObjective::begin_step(real, mine);
  }
  std::int64_t tokens(std::int64_t epoch, std::int64_t example) const override {
    return FineTuningObjective::tokens(epoch, longest_[static_cast<std::size_t>(example)]);
  }
  training::Metrics evaluate() override {
    for (const File file : {File::evaluation, File::prediction})
      if (const tasks::EncodedDataset* examples = task_.examples(file))
        outputs_of(*examples, longest(*examples, prediction_batch_));
    return {};
  }

 private:
  const std::vector<std::int64_t> longest_;
};

bert::Sequence sequence_of(const tasks::EncodedDataset& examples, std::int64_t number) {
  const std::span<const std::int32_t> ids = examples.ids(number);
  bert::Sequence sequence{.token_ids = {ids.begin(), ids.end()}, .key = static_cast<std::uint64_t>(number)};
  sequence.token_types.assign(ids.size(), 1);
  std::fill_n(sequence.token_types.begin(), examples.first_lengths[static_cast<std::size_t>(number)], 0);
  return sequence;
}

/// The numbers of the examples key their random draws.
bert::PackedBatch pack_examples(const tasks::EncodedDataset& examples, std::span<const std::int64_t> numbers,
                                Backend& backend) {
  std::vector<bert::Sequence> sequences;
  for (const std::int64_t number : numbers) sequences.push_back(sequence_of(examples, number));
  return bert::pack(sequences, backend);
}

}  // namespace

double metric(const training::Metrics& metrics, std::string_view name) {
  const auto found = std::ranges::find(metrics, name, &training::Metric::name);
  if (found == metrics.end()) fail(Failure::bug, "metric {}: expected among the figures, got none", name);
  return found->value;
}

FineTuningObjective::FineTuningObjective(const FineTuningTask& task, std::int64_t prediction_batch,
                                         const distributed::Replica& self)
    : task_(task), prediction_batch_(prediction_batch), self_(self), model_(task.make_model()) {}

std::int64_t FineTuningObjective::examples(std::int64_t) { return training().size(); }

std::int64_t FineTuningObjective::tokens(std::int64_t, std::int64_t example) const {
  return training().tokens(example);
}

std::int64_t FineTuningObjective::begin_step(const training::StepExamples& step, const distributed::Share&) {
  numbers_ = step.numbers;
  divisor_ = task_.divisor(numbers_);
  std::int64_t sum = 0;
  for (const std::int64_t number : numbers_) sum += training().tokens(number);
  return sum;
}

std::vector<training::LossPart> FineTuningObjective::loss(std::int64_t first, std::int64_t count, std::uint64_t key) {
  const auto numbers = std::span(numbers_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  const bert::PackedBatch batch = pack_examples(training(), numbers, self_.backend());
  return {{"loss", task_.loss((*model_)(batch, batch.randomness(key)), batch, numbers, divisor_)}};
}

Tensor FineTuningObjective::outputs_of(const tasks::EncodedDataset& examples,
                                       std::span<const std::int64_t> numbers) const {
  const NoGrad no_grad;
  return (*model_)(pack_examples(examples, numbers, self_.backend()), {}).value();
}

std::int64_t FineTuningObjective::first_row(const tasks::EncodedDataset& examples, std::int64_t number) const {
  return model_->rows() == bert::TaskModel::Rows::sequences ? number
                                                            : examples.offsets[static_cast<std::size_t>(number)];
}

tasks::Logits FineTuningObjective::predict(const tasks::EncodedDataset& examples) const {
  const Dim width = model_->outputs();
  const auto begin_of = [&](std::int64_t number) { return first_row(examples, number) * width; };
  tasks::Logits logits{.outputs = static_cast<std::size_t>(width)};
  logits.values.resize(static_cast<std::size_t>(begin_of(examples.size())));
  const distributed::Share mine = distributed::share_of(examples.size(), self_.rank(), self_.size());
  for (std::int64_t first = mine.first; first < mine.end(); first += prediction_batch_) {
    if (io::leave_requested()) break;
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(prediction_batch_, mine.end() - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const std::vector<float> values = ops::to_host<float>(outputs_of(examples, numbers));
    const auto bad = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    if (bad != values.end()) {
      const std::int64_t at = begin_of(first) + (bad - values.begin());
      while (begin_of(first + 1) <= at) ++first;
      fail(Failure::numerics, "example {}: {}: expected finite outputs, got {}; hint: are the weights finite?", first,
           task_.head().substr(0, task_.head().find('.')), *bad);
    }
    std::ranges::copy(values, logits.values.begin() + begin_of(first));
  }
  // All replicas leave together, as a sum that some have begun waits for the others.
  if (distributed::any(self_, io::leave_requested()))
    fail(Failure::interrupted, "interrupted while predicting: nothing was written; hint: run the command again");
  distributed::gather<float>(self_, logits.values, examples.size(), begin_of);
  return logits;
}

training::Metrics FineTuningObjective::evaluate() {
  const tasks::EncodedDataset* const held_out = task_.examples(File::evaluation);
  if (!held_out) return {};
  evaluated_ = predict(*held_out);
  return task_.evaluate(evaluated_);
}

std::optional<double> FineTuningObjective::score(const training::Metrics& evaluation) const {
  if (evaluation.empty()) return std::nullopt;
  return task_.score(evaluation);
}

void FineTuningObjective::write_evaluation(io::Files& files, const std::filesystem::path& directory) const {
  task_.write_evaluation(files, directory, evaluated_);
}

std::unique_ptr<training::Objective> FineTuningObjective::largest(const distributed::Replica& self,
                                                                  std::int64_t count) const {
  return std::make_unique<LargestFineTuning>(task_, count, self);
}

std::size_t FineTuningObjective::data_bytes() const {
  std::size_t bytes = 0;
  for (const File file : {File::train, File::evaluation, File::prediction})
    if (const tasks::EncodedDataset* examples = task_.examples(file)) bytes += examples->bytes();
  return bytes;
}

}  // namespace bertrand::objectives
