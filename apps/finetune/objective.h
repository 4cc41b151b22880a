// Fine-tuning as the training loop sees it: a classifier, a labelled file, and a second one to be judged by.
#pragma once
#include "apps/finetune/classifier.h"
#include "apps/finetune/task_data.h"
#include "apps/training/objective.h"

namespace bertrand::finetune {

class FinetuneObjective : public training::Objective {
 public:
  /// All must outlive the objective.
  struct Inputs {
    const TaskData& data;        ///< with a training file
    const bert::Config& config;  ///< as it is to be written: labels and problem type are the task's
    const text::Tokenizer& tokenizer;
  };
  FinetuneObjective(const Inputs& inputs, const distributed::Replica& self);

  nn::Module& model() override { return model_; }
  const bert::ForSequenceClassification& classifier() const { return model_; }
  std::int64_t examples(std::int64_t epoch) override;
  std::int64_t begin_step(const training::StepExamples& step, const distributed::Share& mine) override;
  std::vector<training::LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override;

  training::Metrics evaluate() override;
  std::optional<double> score(const training::Metrics& evaluation) const override;

  bert::DirectoryFiles directory() const override;

  std::unique_ptr<Objective> twin(const distributed::Replica& self) const override {
    return std::make_unique<FinetuneObjective>(inputs_, self);
  }
  std::size_t data_bytes() const override;
  std::int64_t tokens(std::int64_t epoch, std::int64_t example) const override;

 private:
  const Inputs inputs_;
  const distributed::Replica& self_;
  bert::ForSequenceClassification model_;
  std::vector<std::int64_t> numbers_;  // of the step's examples
};

}  // namespace bertrand::finetune
