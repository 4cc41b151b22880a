// Answers to questions as spans of their contexts (SQuAD): an example is a window of a context with a question.
#pragma once
#include "bert/objectives/finetuning_task.h"
#include "bert/tasks/answer_scores.h"
#include "bert/tasks/squad_data.h"
#include "bert/tasks/task_data.h"

namespace bertrand::objectives {

class SpanTask : public FineTuningTask {
 public:
  struct Options {
    tasks::SquadOptions windows;
    tasks::AnswerOptions answers;       ///< version_2 as in `windows`
    std::filesystem::path config_file;  ///< the start model's, for messages
  };
  /// Reads the files. The tokenizer must outlive the task. `config` is the start model's. Throws what SquadData throws,
  /// and Error(Failure::model) if the model cannot tell a question from its context.
  SpanTask(const tasks::TaskFiles& files, Options options, bert::Config config, const text::Tokenizer& tokenizer);

  std::unique_ptr<bert::TaskModel> make_model() const override;
  std::string_view head() const override { return "qa_outputs."; }
  const tasks::EncodedDataset* examples(File file) const override;
  std::size_t other_bytes() const override;
  /// (CE(start) + CE(end)) / 2. Both are 0, [CLS], in a window without the answer.
  Variable loss(const Variable& outputs, const bert::PackedBatch& batch, std::span<const std::int64_t> numbers,
                double divisor) const override;
  /// The official script's figures, in percent. Those of version 2 are of the answers as they are written; best_exact
  /// and best_f1 are what another --null-score-diff-threshold would reach at most.
  training::Metrics evaluate(const tasks::Logits& outputs) const override;
  /// Without those of questions that have an answer, or none, if the evaluation file has no such question.
  std::vector<tasks::Figure> figures() const override;
  /// eval_predictions.json, eval_nbest_predictions.json and, of version 2, eval_null_odds.json; eval_rows.jsonl: each
  /// question with its answers.
  void write_evaluation(io::Files& files, const std::filesystem::path& directory,
                        const tasks::Logits& outputs) const override;
  /// The same without eval_.
  std::string write_predictions(io::Files& files, const std::filesystem::path& directory,
                                const tasks::Logits& outputs) const override;
  std::string warnings() const override;
  std::string remarks() const override;
  std::vector<std::string> bad_rows() const override { return bad_rows_; }

 private:
  const tasks::SquadData* data(File file) const;

  const Options options_;
  std::vector<std::string> bad_rows_;
  std::unique_ptr<const tasks::SquadData> train_, evaluation_, prediction_;  // null: no such file
};

}  // namespace bertrand::objectives
