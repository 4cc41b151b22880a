// Fine-tuning as the training loop sees it: a classifier, a labelled file, and a second one to be judged by.
#pragma once
#include "bert/objectives/bert_objective.h"
#include "bert/objectives/classifier.h"
#include "bert/tasks/task_data.h"

namespace bertrand::objectives {

class ClassificationObjective : public BertObjective {
 public:
  /// All must outlive the objective.
  struct Inputs {
    const tasks::TaskData& data;  ///< with a training file
    const bert::Config& config;   ///< as it is to be written: labels and problem type are the task's
    const text::Tokenizer& tokenizer;
    std::int64_t prediction_batch = 32;  ///< examples evaluated or predicted at once
  };
  ClassificationObjective(const Inputs& inputs, const distributed::Replica& self);

  nn::Module& model() override { return model_; }
  /// The outputs for each example, in order. See predict().
  tasks::Logits predict(const tasks::EncodedDataset& examples) const {
    return objectives::predict(model_, examples, inputs_.prediction_batch, self_);
  }
  std::int64_t examples(std::int64_t epoch) override;
  std::int64_t begin_step(const training::StepExamples& step, const distributed::Share& mine) override;
  std::vector<training::LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override;

  training::Metrics evaluate() override;
  std::optional<double> score(const training::Metrics& evaluation) const override;

  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t count) const override;
  std::size_t data_bytes() const override;
  std::int64_t tokens(std::int64_t epoch, std::int64_t example) const override;

 private:
  bert::DirectoryFiles directory() const override;
  const Inputs inputs_;
  const distributed::Replica& self_;
  bert::ForSequenceClassification model_;
  std::vector<std::int64_t> numbers_;  // of the step's examples
};

}  // namespace bertrand::objectives
