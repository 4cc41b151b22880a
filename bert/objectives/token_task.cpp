// The losses, the figures and the predictions of a model that labels words.
#include "bert/objectives/token_task.h"

#include <algorithm>

#include "bert/tasks/evaluation_rows.h"
#include "bert/tasks/word_rows.h"
#include "io/file_replacer.h"
#include "io/units.h"

namespace bertrand::objectives {
namespace {

/// The config as it is to be written.
bert::Config config_of_task(bert::Config config, const tasks::TokenData& data) {
  config.architectures = {"BertForTokenClassification"};
  config.problem_type.clear();
  config.labels = data.labels.names();
  return config;
}

}  // namespace

TokenTask::TokenTask(tasks::TokenData data, bert::Config config, const text::Tokenizer& tokenizer)
    : FineTuningTask(config_of_task(std::move(config), data), tokenizer), data_(std::move(data)) {}

std::unique_ptr<bert::TaskModel> TokenTask::make_model() const {
  return std::make_unique<bert::ForTokenClassification>(config_, static_cast<Dim>(data_.labels.size()));
}

const tasks::EncodedDataset* TokenTask::examples(File file) const {
  if (file == File::train) return data_.train ? &data_.train->windows : nullptr;
  const auto& split = file == File::evaluation ? data_.evaluation : data_.prediction;
  return split ? &split->windows : nullptr;
}

std::span<const std::int32_t> TokenTask::targets(std::int64_t number) const {
  const tasks::EncodedDataset& windows = data_.train->windows;
  return windows.targets_at(windows.begin(number), windows.tokens(number));
}

double TokenTask::divisor(std::span<const std::int64_t> numbers) const {
  std::int64_t labelled = 0;
  for (const std::int64_t number : numbers)
    labelled += std::ranges::count_if(targets(number), [](std::int32_t target) { return target >= 0; });
  return static_cast<double>(std::max<std::int64_t>(labelled, 1));  // a window may lie within one word
}

Variable TokenTask::loss(const Variable& logits, const bert::PackedBatch&, std::span<const std::int64_t> numbers,
                         double divisor) const {
  std::vector<std::int32_t> labels;
  for (const std::int64_t number : numbers) std::ranges::copy(targets(number), std::back_inserter(labels));
  return softmax_cross_entropy(logits, ops::from_host(labels, {std::ssize(labels)}, logits.value().backend()), divisor);
}

tasks::WordPredictions TokenTask::predict(const tasks::TokenSplit& split, const tasks::Logits& outputs) const {
  tasks::WordPredictions words = tasks::predict_words(split.tokens.all(), outputs, data_.common(), data_.spill);
  split.tokens.let_go();  // for memory alone
  return words;
}

training::Metrics TokenTask::evaluate(const tasks::Logits& outputs) const {
  const tasks::TokenSplit& split = *data_.evaluation;
  const tasks::WordPredictions words = predict(split, outputs);
  training::Metrics metrics = {{"eval_loss", tasks::mean_token_loss(split, outputs)}};
  for (const auto& [name, value] :
       tasks::token_figures(data_.task, {split.list, data_.labels, split.labels.all(), words.labels.all()}))
    metrics.push_back({name, value});
  split.labels.let_go();  // for memory alone
  return metrics;
}

void TokenTask::write_evaluation(io::Files& files, const std::filesystem::path& directory,
                                 const tasks::Logits& outputs) const {
  const tasks::TokenSplit& split = *data_.evaluation;
  const tasks::WordPredictions words = predict(split, outputs);
  const tasks::JudgedWords judged{split.list, data_.labels, split.labels.all(), words.labels.all()};
  io::replace_in_parts(files, directory / tasks::kEvaluationRows,
                       [&](const auto& write) { tasks::write_word_rows(data_.task, judged, words, write); });
  io::replace_file(files, directory / "eval_report.tsv", tasks::token_report(data_.task, judged));
  if (data_.task == tasks::TokenTask::ner)
    io::replace_file(files, directory / "eval_illegal_tags.tsv", tasks::illegal_tags_report(judged));
  split.labels.let_go();  // for memory alone
}

std::vector<FineTuningTask::Sample> TokenTask::samples(const tasks::Logits& outputs, std::size_t most) const {
  const tasks::TokenSplit& split = *data_.evaluation;
  const tasks::WordPredictions words = predict(split, outputs);
  std::vector<Sample> samples;
  most = std::min(most, split.sentences);
  std::size_t begin = 0;
  split.list.for_each([&](std::size_t s, const tasks::TokenFile& sentence) {
    const std::size_t first = std::exchange(begin, begin + sentence.words.size());
    if (samples.size() == most || s != samples.size() * split.sentences / most) return;
    const auto labelled = [&](const io::Spillable<std::int32_t>& labels) {
      std::vector<std::string> found;
      for (std::size_t w = 0; w < sentence.words.size(); ++w)
        if (const std::string& name = data_.labels.name(static_cast<std::size_t>(labels.all()[first + w])); name != "O")
          found.push_back(fmt::format("{} {}", sentence.words[w], name));
      return fmt::format("{}", fmt::join(found, ", "));
    };
    samples.push_back({.text = fmt::format("{}", fmt::join(sentence.words, " ")),
                       .truth = labelled(split.labels),
                       .prediction = labelled(words.labels)});
  });
  return samples;
}

std::string TokenTask::write_predictions(io::Files& files, const std::filesystem::path& directory,
                                         const tasks::Logits& outputs) const {
  const tasks::TokenSplit& split = *data_.prediction;
  const std::filesystem::path file = directory / "predictions.tsv";
  const tasks::WordPredictions words = predict(split, outputs);
  io::replace_in_parts(files, file, [&](const auto& write) {
    tasks::write_token_predictions_tsv(split.list, data_.labels, words, write);
  });
  return fmt::format("{}: predictions of {} in {}", file.string(), io::counted(words.labels.size(), "word"),
                     io::counted(split.sentences, "sentence"));
}

}  // namespace bertrand::objectives
