// A label for each word: names, parts of speech, punctuation, or any other.
#pragma once
#include "bert/objectives/finetuning_task.h"
#include "bert/tasks/token_data.h"

namespace bertrand::objectives {

/// The loss is the mean cross-entropy of the labelled pieces of a step: the first piece of each word, or all. A piece
/// that lies in two windows is learnt once, where it has most context, which is also where its word is predicted.
class TokenTask : public FineTuningTask {
 public:
  /// The tokenizer must outlive the task. `config` is the start model's: the labels become the data's. Throws
  /// Failure::model for a model of another kind that is not to be trained.
  TokenTask(tasks::TokenData data, bert::Config config, const text::Tokenizer& tokenizer);

  std::unique_ptr<bert::TaskModel> make_model() const override;
  const tasks::EncodedDataset* examples(File file) const override;
  std::size_t other_bytes() const override { return data_.bytes(); }
  double divisor(std::span<const std::int64_t> numbers) const override;
  Variable loss(const Variable& outputs, const bert::PackedBatch& batch, std::span<const std::int64_t> numbers,
                double divisor) const override;
  training::Metrics evaluate(const tasks::Logits& outputs) const override;
  std::vector<tasks::Figure> figures() const override { return tasks::figures_of(data_.task); }
  void write_evaluation(io::Files& files, const std::filesystem::path& directory,
                        const tasks::Logits& outputs) const override;
  std::vector<Sample> samples(const tasks::Logits& outputs, std::size_t most) const override;
  std::string write_predictions(io::Files& files, const std::filesystem::path& directory,
                                const tasks::Logits& outputs) const override;
  std::string warnings() const override { return data_.warnings(); }
  std::string remarks() const override { return data_.remarks(); }
  std::vector<std::string> bad_rows() const override { return data_.bad_rows; }

 private:
  tasks::WordPredictions predict(const tasks::TokenSplit& split, const tasks::Logits& outputs) const;
  /// The targets of one window of the training file: a label or −1 for each token.
  std::span<const std::int32_t> targets(std::int64_t number) const;

  const tasks::TokenData data_;
};

}  // namespace bertrand::objectives
