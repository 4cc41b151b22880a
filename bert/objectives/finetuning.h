// Fine-tuning as the training loop sees it: the model of a task, a file to train on, and a second one to be judged by.
#pragma once
#include <vector>

#include "bert/objectives/bert_objective.h"
#include "bert/objectives/finetuning_task.h"
#include "bert/objectives/kept_outputs.h"
#include "io/item_progress.h"

namespace bertrand::objectives {

class FineTuningObjective : public BertObjective {
 public:
  /// `prediction_batch`: examples evaluated or predicted at once. `quiet`: no progress is shown. Outputs that are more
  /// than `spill` says go to the disk. The task and the replica must outlive the objective.
  FineTuningObjective(const FineTuningTask& task, std::int64_t prediction_batch, const distributed::Replica& self,
                      bool quiet, io::SpillPlace spill = {});

  nn::Module& model() override { return *model_; }
  /// Numbers in a row of outputs: all that the model says of an example, or of a token.
  std::size_t outputs() const { return static_cast<std::size_t>(model_->outputs() * task_.sequences_of_example()); }
  /// The outputs for each example of a file, in order, nothing dropped out; none if the run has no such file. All
  /// replicas call it, each computes its share, and the first one gets all, the others no rows. What an example gets
  /// does not depend on its batch. `kept`, on the first replica only: what was computed before, of a streamed file, and
  /// where the outputs are kept. Throws Failure::interrupted on all replicas if one was asked to stop, and
  /// Failure::numerics if an output is not finite.
  std::optional<tasks::Logits> predict(File file, KeptOutputs* kept = nullptr) const;

  std::int64_t examples(std::int64_t epoch) override;
  std::int64_t begin_step(const training::StepExamples& step, const distributed::Share& mine) override;
  std::vector<training::LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override;

  training::Metrics evaluate() override;
  std::optional<double> score(const training::Metrics& evaluation) const override;
  std::vector<std::pair<std::string, std::string>> figures_in_words() const override;
  void write_evaluation(io::Files& files, const std::filesystem::path& directory) const override;
  std::optional<training::Samples> samples() const override;

  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t count) const override;
  std::size_t data_bytes() const override;
  std::size_t bytes_of_outputs() const override;
  std::int64_t tokens(std::int64_t epoch, std::int64_t example) const override;

 protected:
  /// The outputs of these examples, computed together.
  Tensor outputs_of(const tasks::EncodedDataset& examples, std::span<const std::int64_t> numbers) const;

  const FineTuningTask& task_;
  const std::int64_t prediction_batch_;
  const distributed::Replica& self_;

 private:
  bert::DirectoryFiles directory() const override { return task_.directory(); }
  tasks::Logits predict_held(const tasks::EncodedDataset& examples, bool shows_progress) const;
  tasks::Logits predict_streamed(const StreamedFile& file, KeptOutputs* kept) const;
  /// How many examples are predicted before all replicas look who is to stop: what a kill may cost.
  std::int64_t examples_of_part() const;
  /// Computes the outputs of examples [first, end) into `rows`. Ends early if the replica is asked to stop.
  struct Range {
    std::int64_t first = 0, end = 0;
    std::int64_t number = 0;  ///< of the first one in its file, for messages
  };
  void compute(const tasks::EncodedDataset& examples, const Range& range, std::span<float> rows) const;
  const tasks::EncodedDataset& training() const { return *task_.examples(File::train); }
  /// Where the outputs of an example of the file begin among all of them; for one past the last, where they end.
  std::int64_t first_row(const tasks::EncodedDataset& examples, std::int64_t number) const;

  const bool quiet_;
  const io::SpillPlace spill_;
  std::unique_ptr<bert::TaskModel> model_;
  std::vector<std::int64_t> numbers_;  // of the step's examples
  double divisor_ = 1;                 // of their losses
  tasks::Logits evaluated_;            // the outputs of the last evaluation
};

}  // namespace bertrand::objectives
