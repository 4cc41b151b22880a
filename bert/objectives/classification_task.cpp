// The losses, the figures and the predictions of a classifier.
#include "bert/objectives/classification_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "bert/tasks/class_report.h"
#include "bert/tasks/evaluation_rows.h"
#include "bert/tasks/predictions.h"
#include "io/error.h"
#include "io/file_replacer.h"
#include "io/units.h"

namespace bertrand::objectives {
namespace {

/// The config as it is to be written.
bert::Config config_of_task(bert::Config config, const tasks::TaskData& data) {
  if (data.task.has_choices()) {
    config.architectures = {"BertForMultipleChoice"};
    config.problem_type.clear();
    config.labels.clear();  // they are the data's, and any number of them
    return config;
  }
  config.architectures = {"BertForSequenceClassification"};
  config.problem_type = io::name_in(tasks::problem_types(), data.task.kind);
  config.labels = data.labels.names();
  // transformers counts the outputs by the names, so a single score needs one too.
  if (data.task.kind == tasks::Kind::regression) config.labels = {"LABEL_0"};
  return config;
}

/// What is to be learnt of an example of the training file: as many numbers as tasks::targets_of says, the same for
/// each.
std::span<const std::int32_t> targets_of(const tasks::TaskData& data, std::int64_t number) {
  const tasks::EncodedDataset& encoded = data.train->encoded;
  const std::int64_t each = encoded.targets.size() * data.sequences() / encoded.size();
  return encoded.targets_at(number * each, each);
}

LossWeights weights_of_task(const ClassificationTask::Options& options, const tasks::TaskData& data) {
  LossWeights weights{.classes = options.weights, .smoothing = options.label_smoothing};
  const bool any = options.balanced || !weights.plain();
  if (any && data.task.kind != tasks::Kind::classification)
    fail(Failure::usage, "--class-weights, --label-smoothing: expected with classes, got --kind {}",
         io::name_in(tasks::kinds(), data.task.kind));
  if ((options.balanced || !weights.classes.empty()) && data.task.has_choices())
    fail(Failure::usage, "--class-weights: expected classes that all rows have, got choices of each row");
  if (!weights.classes.empty() && weights.classes.size() != data.labels.size())
    fail(Failure::usage, "--class-weights: expected {}, a number for each of {}, got {} of them", data.labels.size(),
         tasks::in_braces(data.labels.names()), weights.classes.size());
  if (options.balanced && data.train) {
    weights.classes = balanced_weights(data.train->encoded.targets.all(), data.labels.size());
    data.train->encoded.let_go();  // for memory alone
  }
  if (options.by_heart) weights.smoothing = 0;
  return weights;
}

/// Half precision would round the targets, so losses on them are computed in f32 at least.
Variable in_f32(const Variable& logits) {
  const DType dtype = logits.value().dtype();
  return dtype == DType::f64 || dtype == DType::f32 ? logits : cast(logits, DType::f32);
}

}  // namespace

ClassificationTask::ClassificationTask(tasks::TaskData data, bert::Config config, const text::Tokenizer& tokenizer,
                                       const Options& options)
    : FineTuningTask(config_of_task(std::move(config), data), tokenizer),
      data_(std::move(data)),
      weights_(weights_of_task(options, data_)) {}

std::unique_ptr<bert::TaskModel> ClassificationTask::make_model() const {
  return std::make_unique<bert::ForSequenceClassification>(config_, data_.outputs());
}

const tasks::EncodedDataset* ClassificationTask::examples(File file) const {
  const auto& split = file == File::train        ? data_.train
                      : file == File::evaluation ? data_.evaluation
                                                 : data_.prediction;
  return split ? &split->encoded : nullptr;
}

double ClassificationTask::divisor(std::span<const std::int64_t> numbers) const {
  double sum = 0;
  for (const std::int64_t number : numbers) sum += weights_.weight(targets_of(data_, number)[0]);
  return sum;
}

Variable ClassificationTask::loss(const Variable& outputs, const bert::PackedBatch&,
                                  std::span<const std::int64_t> numbers, double divisor) const {
  const Variable logits =
      data_.task.has_choices() ? reshape(outputs, {std::ssize(numbers), data_.sequences()}) : outputs;
  Backend& backend = logits.value().backend();
  if (data_.task.kind == tasks::Kind::classification) {
    std::vector<std::int32_t> labels;
    for (const std::int64_t number : numbers) labels.push_back(targets_of(data_, number)[0]);
    if (!weights_.plain()) return weighted_cross_entropy(in_f32(logits), labels, weights_, divisor);
    return softmax_cross_entropy(logits, ops::from_host(labels, {std::ssize(labels)}, backend), divisor);
  }
  std::vector<float> targets;
  for (const std::int64_t number : numbers)
    for (const std::int32_t target : targets_of(data_, number))
      targets.push_back(data_.task.kind == tasks::Kind::regression ? std::bit_cast<float>(target)
                                                                   : static_cast<float>(target));
  const Variable exact = in_f32(logits);
  const Tensor wanted = ops::cast(ops::from_host(targets, exact.shape(), backend), exact.value().dtype());
  if (data_.task.kind == tasks::Kind::regression) return mse(exact, wanted, divisor);
  return binary_cross_entropy_with_logits(exact, wanted, divisor * static_cast<double>(exact.shape()[1]));
}

training::Metrics ClassificationTask::evaluate(const tasks::Logits& outputs) const {
  training::Metrics metrics;
  for (const auto& [name, value] : tasks::evaluate(data_.task, outputs, data_.evaluation->encoded.targets.all()))
    metrics.push_back({name, value});
  return metrics;
}

void ClassificationTask::write_evaluation(io::Files& files, const std::filesystem::path& directory,
                                          const tasks::Logits& outputs) const {
  const tasks::Split& split = *data_.evaluation;
  io::replace_in_parts(files, directory / tasks::kEvaluationRows, [&](const auto& write) {
    tasks::write_evaluation_rows(data_.task, data_.labels, split.dataset, split.encoded, outputs, write);
  });
  if (data_.task.kind == tasks::Kind::regression) return;
  const auto report = data_.task.kind == tasks::Kind::classification ? tasks::class_report : tasks::multi_label_report;
  io::replace_file(files, directory / "eval_report.tsv",
                   report(data_.labels, tasks::decisions(data_.task.kind, outputs), split.encoded.targets.all()));
}

std::vector<FineTuningTask::Sample> ClassificationTask::samples(const tasks::Logits& outputs, std::size_t most) const {
  const tasks::ExampleList& examples = data_.evaluation->dataset.examples;
  const std::span<const std::int32_t> targets = data_.evaluation->encoded.targets.all();
  const tasks::Kind kind = data_.task.kind;
  const std::vector<std::int32_t> decided =
      kind == tasks::Kind::regression ? std::vector<std::int32_t>{} : tasks::decisions(kind, outputs);
  const auto labels_of = [&](std::span<const std::int32_t> flags, std::size_t row) {
    std::vector<std::string> names;
    for (std::size_t k = 0; k < outputs.outputs; ++k)
      if (flags[row * outputs.outputs + k] != 0) names.push_back(data_.labels.name(k));
    return fmt::format("{}", fmt::join(names, ", "));
  };
  std::vector<Sample> samples;
  most = std::min(most, examples.size());
  examples.for_each([&](std::size_t i, const tasks::Example& example) {
    if (samples.size() == most || i != samples.size() * examples.size() / most) return;
    Sample& sample = samples.emplace_back();
    const auto second = example.second_text();
    sample.text = example.text_a + (second ? " | " + *second : "");
    if (kind == tasks::Kind::regression) {
      sample.truth = fmt::format("{:.4g}", std::bit_cast<float>(targets[i]));
      sample.prediction = fmt::format("{:.4g}", outputs.row(i)[0]);
    } else if (kind == tasks::Kind::multi_label) {
      sample.truth = labels_of(targets, i);
      sample.prediction = labels_of(decided, i);
    } else {
      const auto predicted = static_cast<std::size_t>(decided[i]);
      sample.truth = data_.labels.name(static_cast<std::size_t>(targets[i]));
      sample.prediction =
          fmt::format("{} {:.1f} %", data_.labels.name(predicted), 100 * tasks::softmax(outputs.row(i))[predicted]);
    }
  });
  return samples;
}

std::string ClassificationTask::remarks() const {
  std::string text = data_.remarks();
  for (std::size_t k = 0; k < weights_.classes.size(); ++k)
    text += fmt::format("{}{}={:.4g}{}", k == 0 ? "class weights: " : ", ", data_.labels.name(k), weights_.classes[k],
                        k + 1 == weights_.classes.size() ? "\n" : "");
  return text;
}

std::string ClassificationTask::write_predictions(io::Files& files, const std::filesystem::path& directory,
                                                  const tasks::Logits& outputs) const {
  const tasks::Split& split = *data_.prediction;
  const std::filesystem::path file = directory / "predictions.tsv";
  io::replace_in_parts(files, file, [&](const auto& write) {
    tasks::write_predictions_tsv(data_.task, data_.labels, split.dataset, outputs, write);
  });
  return fmt::format("{}: {}", file.string(), io::counted(outputs.rows(), "prediction"));
}

}  // namespace bertrand::objectives
