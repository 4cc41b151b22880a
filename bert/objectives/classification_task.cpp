// The losses, the figures and the predictions of a classifier.
#include "bert/objectives/classification_task.h"

#include <fmt/format.h>

#include "bert/tasks/predictions.h"
#include "io/error.h"
#include "io/file_replacer.h"

namespace bertrand::objectives {
namespace {

bool has_pairs(const std::optional<tasks::Split>& split) {
  return split && split->dataset.examples.front().text_b.has_value();
}

/// The config as it is to be written.
bert::Config config_of_task(bert::Config config, const tasks::TaskData& data) {
  if (config.type_vocab_size < 2 && (has_pairs(data.train) || has_pairs(data.evaluation) || has_pairs(data.prediction)))
    fail(Failure::model, "config.json: type_vocab_size: expected 2 for pairs of texts, got {}", config.type_vocab_size);
  config.architectures = {"BertForSequenceClassification"};
  config.problem_type = tasks::problem_type(data.task.kind);
  config.labels = data.labels.names();
  // transformers counts the outputs by the names, so a single score needs one too.
  if (data.task.kind == tasks::Kind::regression) config.labels = {"LABEL_0"};
  return config;
}

const tasks::Target& target_of(const tasks::Dataset& dataset, std::int64_t number) {
  return *dataset.examples[static_cast<std::size_t>(number)].target;
}

}  // namespace

ClassificationTask::ClassificationTask(tasks::TaskData data, bert::Config config, const text::Tokenizer& tokenizer)
    : data_(std::move(data)), config_(config_of_task(std::move(config), data_)), tokenizer_(tokenizer) {}

bert::DirectoryFiles ClassificationTask::directory() const {
  return {.config = config_, .vocabulary = tokenizer_.vocabulary().text(), .tokenizer = tokenizer_.options()};
}

std::unique_ptr<bert::TaskModel> ClassificationTask::make_model() const {
  return std::make_unique<bert::ForSequenceClassification>(config_, data_.outputs());
}

const tasks::EncodedDataset* ClassificationTask::examples(File file) const {
  const auto& split = file == File::train        ? data_.train
                      : file == File::evaluation ? data_.evaluation
                                                 : data_.prediction;
  return split ? &split->encoded : nullptr;
}

Variable ClassificationTask::loss(const Variable& logits, const bert::PackedBatch&,
                                  std::span<const std::int64_t> numbers, double divisor) const {
  const tasks::Dataset& dataset = data_.train->dataset;
  Backend& backend = logits.value().backend();
  if (data_.task.kind == tasks::Kind::classification) {
    std::vector<std::int32_t> labels;
    for (const std::int64_t number : numbers) labels.push_back(std::get<std::int32_t>(target_of(dataset, number)));
    return softmax_cross_entropy(logits, ops::from_host(labels, {std::ssize(labels)}, backend), divisor);
  }
  std::vector<float> targets;
  for (const std::int64_t number : numbers) {
    if (data_.task.kind == tasks::Kind::regression) targets.push_back(std::get<float>(target_of(dataset, number)));
    else
      for (const float flag : std::get<std::vector<float>>(target_of(dataset, number))) targets.push_back(flag);
  }
  // Half precision would round the targets, so these losses are computed in f32 at least.
  const DType dtype = logits.value().dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Variable outputs = logits.value().dtype() == dtype ? logits : cast(logits, dtype);
  const Tensor wanted = ops::cast(ops::from_host(targets, outputs.shape(), backend), dtype);
  if (data_.task.kind == tasks::Kind::regression) return mse(outputs, wanted, divisor);
  return binary_cross_entropy_with_logits(outputs, wanted, divisor * static_cast<double>(outputs.shape()[1]));
}

training::Metrics ClassificationTask::evaluate(const tasks::Logits& outputs) const {
  training::Metrics metrics;
  for (const auto& [name, value] : tasks::evaluate(data_.task, outputs, data_.evaluation->dataset.examples))
    metrics.push_back({name, value});
  return metrics;
}

double ClassificationTask::score(const training::Metrics& evaluation) const {
  std::map<std::string, double> results;
  for (const training::Metric& metric : evaluation) results[metric.name] = metric.value;
  return tasks::selection_score(data_.task, results);
}

std::string ClassificationTask::write_predictions(io::Files& files, const std::filesystem::path& directory,
                                                  const tasks::Logits& outputs) const {
  const tasks::Split& split = *data_.prediction;
  const std::filesystem::path file = directory / "predictions.tsv";
  io::replace_file(files, file, tasks::predictions_tsv(data_.task, data_.labels, split.dataset, outputs));
  return fmt::format("{}: {} predictions", file.string(), split.encoded.size());
}

}  // namespace bertrand::objectives
