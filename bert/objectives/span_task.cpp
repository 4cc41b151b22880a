// The losses, the figures and the answers of a model that finds spans.
#include "bert/objectives/span_task.h"

#include <fmt/format.h>

#include <limits>

#include "bert/tasks/answer_rows.h"
#include "bert/tasks/evaluation_rows.h"
#include "io/error.h"
#include "io/file_replacer.h"
#include "io/units.h"

namespace bertrand::objectives {
namespace {

/// The config as it is to be written.
bert::Config config_of_task(bert::Config config, const std::string& file) {
  bert::require_pairs(config, file, "a question and its context");
  config.architectures = {"BertForQuestionAnswering"};
  config.problem_type.clear();
  config.labels.clear();  // transformers counts the outputs by them, and there are two: start and end
  return config;
}

/// The script's name of a figure as that of a metric.
std::string metric_name(std::string figure) {
  const auto replace_front = [&](std::string_view from, std::string_view to) {
    if (figure.starts_with(from)) figure.replace(0, from.size(), to);
  };
  if (figure == "exact") figure = "exact_match";
  replace_front("HasAns_", "has_answer_");
  replace_front("NoAns_", "no_answer_");
  return "eval_" + figure;
}

/// A text is learnt with all its questions or not at all.
std::vector<bool> held_out_paragraphs(const tasks::TaskFiles& files) {
  std::vector<std::int32_t> groups;
  tasks::walk_squad(files.train, [&](const tasks::SquadParagraph&) { groups.push_back(0); });
  return tasks::held_out(groups, files.held_out, files.train.string());
}

}  // namespace

SpanTask::SpanTask(const tasks::TaskFiles& files, Options options, bert::Config config,
                   const text::Tokenizer& tokenizer)
    : FineTuningTask(config_of_task(std::move(config), options.config_file.string()), tokenizer),
      options_(std::move(options)) {
  std::vector<std::string>* const bad = files.on_bad == tasks::OnBadRow::keep ? &bad_rows_ : nullptr;
  const auto read = [&](const std::filesystem::path& file, tasks::SquadUse use,
                        const tasks::ParagraphFilter& wanted = {}) {
    return file.empty() ? nullptr
                        : std::make_unique<const tasks::SquadData>(file, use, tokenizer, options_.windows, bad,
                                                                   files.spill, wanted);
  };
  if (files.held_out.share > 0) {
    const std::vector<bool> marked = held_out_paragraphs(files);
    const auto is_marked = [&](std::size_t number) { return number < marked.size() && marked[number]; };
    train_ = read(files.train, tasks::SquadUse::training, [&](std::size_t number) { return !is_marked(number); });
    evaluation_ = read(files.train, tasks::SquadUse::evaluation, is_marked);
  } else {
    train_ = read(files.train, tasks::SquadUse::training);
    evaluation_ = read(files.evaluation, tasks::SquadUse::evaluation);
  }
  prediction_ = read(files.prediction, tasks::SquadUse::prediction);
}

std::unique_ptr<bert::TaskModel> SpanTask::make_model() const {
  return std::make_unique<bert::ForQuestionAnswering>(config_);
}

const tasks::SquadData* SpanTask::data(File file) const {
  switch (file) {
    case File::train: return train_.get();
    case File::evaluation: return evaluation_.get();
    case File::prediction: return prediction_.get();
  }
  return nullptr;
}

const tasks::EncodedDataset* SpanTask::examples(File file) const {
  const tasks::SquadData* const found = data(file);
  return found ? &found->windows() : nullptr;
}

std::size_t SpanTask::other_bytes() const {
  std::size_t bytes = 0;
  for (const File file : {File::train, File::evaluation, File::prediction})
    if (const tasks::SquadData* const found = data(file)) bytes += found->bytes();
  return bytes;
}

Variable SpanTask::loss(const Variable& outputs, const bert::PackedBatch& batch, std::span<const std::int64_t> numbers,
                        double divisor) const {
  bert::ForQuestionAnswering::Spans spans{.count = divisor};
  for (const std::int64_t number : numbers) {
    const std::span<const std::int32_t> targets = train_->windows().targets_at(2 * number, 2);
    spans.starts.push_back(targets[0]);
    spans.ends.push_back(targets[1]);
  }
  return bert::ForQuestionAnswering::loss(outputs, batch, spans);
}

std::vector<tasks::Figure> SpanTask::figures() const {
  std::vector<tasks::Figure> all = tasks::answer_figures(options_.answers.version_2);
  if (!evaluation_) return all;
  std::erase_if(all, [&](const tasks::Figure& figure) {
    return (!evaluation_->has_answers() && figure.name.starts_with("has_answer_")) ||
           (!evaluation_->has_unanswered() && figure.name.starts_with("no_answer_"));
  });
  return all;
}

training::Metrics SpanTask::evaluate(const tasks::Logits& outputs) const {
  const bool version_2 = options_.answers.version_2;
  std::vector<tasks::ScoredAnswer> all;
  tasks::AnswerOptions answered = options_.answers;  // each question, as any threshold may be the best
  answered.null_score_diff_threshold = std::numeric_limits<double>::infinity();
  evaluation_->answer(outputs, answered,
                      [&](const auto&, const tasks::SquadQuestion& question, const tasks::Answer& answer) {
                        all.push_back(tasks::scored_answer(question, answer.text, version_2));
                        all.back().null_odds = answer.null_odds;
                      });
  training::Metrics metrics;
  for (const auto& [name, value] :
       version_2 ? tasks::squad2_figures(all, options_.answers.null_score_diff_threshold) : tasks::squad_figures(all))
    metrics.push_back({metric_name(name), value});
  return metrics;
}

void SpanTask::write_evaluation(io::Files& files, const std::filesystem::path& directory,
                                const tasks::Logits& outputs) const {
  const bool version_2 = options_.answers.version_2;
  tasks::AnswerFiles out(files, {.directory = directory, .prefix = "eval_", .version_2 = version_2});
  io::FileReplacer rows(files, directory / tasks::kEvaluationRows);
  rows.write(tasks::answer_rows_header(version_2, evaluation_->questions()));
  evaluation_->answer(
      outputs, options_.answers,
      [&](const tasks::SquadParagraph& paragraph, const tasks::SquadQuestion& question, const tasks::Answer& answer) {
        out.add(question.id, answer);
        rows.write(tasks::answer_row(version_2, paragraph, question, answer.text));
      });
  out.publish();
  rows.publish();
}

std::string SpanTask::write_predictions(io::Files& files, const std::filesystem::path& directory,
                                        const tasks::Logits& outputs) const {
  tasks::AnswerFiles out(files, {.directory = directory, .version_2 = options_.answers.version_2});
  prediction_->answer(outputs, options_.answers,
                      [&](const auto&, const tasks::SquadQuestion& question, const tasks::Answer& answer) {
                        out.add(question.id, answer);
                      });
  out.publish();
  return fmt::format("{}: {}", out.predictions().string(), io::counted(prediction_->questions(), "answer"));
}

std::string SpanTask::warnings() const {
  std::string text;
  for (const File file : {File::train, File::evaluation, File::prediction})
    if (const tasks::SquadData* found = data(file)) text += found->warnings();
  return text;
}

std::string SpanTask::remarks() const {
  std::string text;
  for (const File file : {File::train, File::evaluation, File::prediction})
    if (const tasks::SquadData* found = data(file)) text += found->remarks();
  return text;
}

}  // namespace bertrand::objectives
