// The losses and predictions of a classifier.
#include "bert/objectives/classifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "distributed/exchange.h"
#include "io/error.h"
#include "io/signals.h"

namespace bertrand::objectives {
namespace {

bert::Sequence sequence_of(const tasks::EncodedDataset& data, std::int64_t number) {
  const std::span<const std::int32_t> ids = data.ids(number);
  bert::Sequence sequence{.token_ids = {ids.begin(), ids.end()}, .key = static_cast<std::uint64_t>(number)};
  sequence.token_types.assign(ids.size(), 1);
  std::fill_n(sequence.token_types.begin(), data.first_lengths[static_cast<std::size_t>(number)], 0);
  return sequence;
}

}  // namespace

bert::PackedBatch pack_examples(const tasks::EncodedDataset& data, std::span<const std::int64_t> numbers,
                                Backend& backend) {
  std::vector<bert::Sequence> sequences;
  for (const std::int64_t number : numbers) sequences.push_back(sequence_of(data, number));
  return bert::pack(sequences, backend);
}

Variable task_loss(tasks::Kind kind, const Variable& logits, const tasks::Dataset& dataset,
                   std::span<const std::int64_t> numbers, std::int64_t examples_of_step) {
  const auto target = [&](std::int64_t number) -> const tasks::Target& {
    return *dataset.examples[static_cast<std::size_t>(number)].target;
  };
  const auto rows = static_cast<Dim>(numbers.size());
  const auto count = static_cast<double>(examples_of_step);
  Backend& backend = logits.value().backend();
  if (kind == tasks::Kind::classification) {
    std::vector<std::int32_t> labels;
    for (const std::int64_t number : numbers) labels.push_back(std::get<std::int32_t>(target(number)));
    return softmax_cross_entropy(logits, ops::from_host(labels, {rows}, backend), count);
  }
  std::vector<float> targets;
  for (const std::int64_t number : numbers) {
    if (kind == tasks::Kind::regression) targets.push_back(std::get<float>(target(number)));
    else
      for (const float flag : std::get<std::vector<float>>(target(number))) targets.push_back(flag);
  }
  // Half precision would round the targets, so these losses are computed in f32 at least.
  const DType dtype = logits.value().dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Variable outputs = logits.value().dtype() == dtype ? logits : cast(logits, dtype);
  const Tensor wanted = ops::cast(ops::from_host(targets, outputs.shape(), backend), dtype);
  if (kind == tasks::Kind::regression) return mse(outputs, wanted, count);
  return binary_cross_entropy_with_logits(outputs, wanted, count * static_cast<double>(outputs.shape()[1]));
}

tasks::Logits predict(const bert::ForSequenceClassification& model, const tasks::EncodedDataset& data,
                      std::int64_t batch_size, const distributed::Replica& self) {
  const NoGrad no_grad;
  tasks::Logits logits{.outputs = static_cast<std::size_t>(model.classifier.bias.initial().shape[0])};
  logits.values.resize(static_cast<std::size_t>(data.size()) * logits.outputs);
  const distributed::Share mine = distributed::share_of(data.size(), self.rank(), self.size());
  for (std::int64_t first = mine.first; first < mine.end(); first += batch_size) {
    if (io::leave_requested()) break;
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(batch_size, mine.end() - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const Tensor outputs = model(pack_examples(data, numbers, self.backend()), {}).value();
    const std::vector<float> values = ops::to_host<float>(outputs);
    const auto bad = std::find_if_not(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
    if (bad != values.end())
      fail(Failure::numerics, "example {}: classifier: expected finite outputs, got {}; hint: are the weights finite?",
           first + (bad - values.begin()) / outputs.shape()[1], *bad);
    std::ranges::copy(values, logits.values.begin() + first * static_cast<std::ptrdiff_t>(logits.outputs));
  }
  // All replicas leave together, as a sum that some have begun waits for the others.
  if (distributed::any(self, io::leave_requested()))
    fail(Failure::interrupted, "interrupted while predicting: nothing was written; hint: run the command again");
  distributed::gather<float>(self, logits.values, data.size());
  return logits;
}

}  // namespace bertrand::objectives
