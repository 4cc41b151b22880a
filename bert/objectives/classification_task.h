// Classes, several labels, or a number for each text or pair of texts; and multiple choice, where the classes are texts
// of the row, and the model gives a score to each.
#pragma once
#include "bert/objectives/finetuning_task.h"
#include "bert/objectives/weighted_loss.h"
#include "bert/tasks/task_data.h"

namespace bertrand::objectives {

class ClassificationTask : public FineTuningTask {
 public:
  struct Options {
    bool balanced = false;        ///< classes weigh the more, the rarer they are in the training file
    std::vector<double> weights;  ///< of the classes, in the order of the labels; empty: all 1
    double label_smoothing = 0;   ///< share of the target that is spread over all classes
    bool by_heart = false;        ///< the loss is to fall to 0: label_smoothing is checked, and not applied
  };
  /// The tokenizer must outlive the task. Options are for Kind::classification alone. `config` is the start model's:
  /// the labels and the problem type become the data's. Throws Failure::model if it cannot tell the texts of pairs
  /// apart, and Failure::usage if options do not fit the data.
  ClassificationTask(tasks::TaskData data, bert::Config config, const text::Tokenizer& tokenizer,
                     const Options& options);

  std::unique_ptr<bert::TaskModel> make_model() const override;
  std::int64_t sequences_of_example() const override { return data_.sequences(); }
  const tasks::EncodedDataset* examples(File file) const override;
  std::size_t other_bytes() const override { return data_.text_bytes(); }
  double divisor(std::span<const std::int64_t> numbers) const override;
  Variable loss(const Variable& outputs, const bert::PackedBatch& batch, std::span<const std::int64_t> numbers,
                double divisor) const override;
  training::Metrics evaluate(const tasks::Logits& outputs) const override;
  std::vector<tasks::Figure> figures() const override { return tasks::figures_of(data_.task, data_.labels); }
  /// eval_rows.jsonl: each row with its text, and what is said of it. eval_report.tsv: precision, recall, F1 and
  /// support of each class, and the confusion matrix; none for a number.
  void write_evaluation(io::Files& files, const std::filesystem::path& directory,
                        const tasks::Logits& outputs) const override;
  std::vector<Sample> samples(const tasks::Logits& outputs, std::size_t most) const override;
  std::string write_predictions(io::Files& files, const std::filesystem::path& directory,
                                const tasks::Logits& outputs) const override;
  std::string rows_of_classes() const override { return data_.rows_of_classes(); }
  std::string columns() const override { return data_.columns(); }
  std::string warnings() const override { return data_.warnings(); }
  std::string remarks() const override;
  std::vector<std::string> bad_rows() const override { return data_.bad_rows(); }

 private:
  const tasks::TaskData data_;
  const LossWeights weights_;
};

}  // namespace bertrand::objectives
