// Classes, several labels, or a number for each text or pair of texts.
#pragma once
#include "bert/objectives/finetuning_task.h"
#include "bert/tasks/task_data.h"

namespace bertrand::objectives {

class ClassificationTask : public FineTuningTask {
 public:
  /// The tokenizer must outlive the task. `config` is the start model's: the labels and the problem type become the
  /// data's. Throws Failure::model if it cannot tell the texts of pairs apart.
  ClassificationTask(tasks::TaskData data, bert::Config config, const text::Tokenizer& tokenizer);

  bert::DirectoryFiles directory() const override;
  std::unique_ptr<bert::TaskModel> make_model() const override;
  const tasks::EncodedDataset* examples(File file) const override;
  Variable loss(const Variable& outputs, const bert::PackedBatch& batch, std::span<const std::int64_t> numbers,
                double divisor) const override;
  training::Metrics evaluate(const tasks::Logits& outputs) const override;
  double score(const training::Metrics& evaluation) const override;
  std::string write_predictions(io::Files& files, const std::filesystem::path& directory,
                                const tasks::Logits& outputs) const override;
  std::string warnings() const override { return data_.warnings(); }
  std::string remarks() const override { return data_.remarks(); }

 private:
  const tasks::TaskData data_;
  const bert::Config config_;
  const text::Tokenizer& tokenizer_;
};

}  // namespace bertrand::objectives
