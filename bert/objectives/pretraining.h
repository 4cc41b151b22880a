// Masked language model and next sentence prediction (Devlin et al. 2018), or the first alone, as something to train.
#pragma once
#include <deque>
#include <future>
#include <span>
#include <vector>

#include "bert/data/pretraining_examples.h"
#include "bert/network/heads.h"
#include "bert/objectives/bert_objective.h"

namespace bertrand::distributed {
class Replica;
}

namespace bertrand::objectives {

class PretrainingObjective : public BertObjective {
 public:
  struct Inputs {
    data::PretrainingExamples& training;
    data::PretrainingExamples* evaluation = nullptr;  ///< held out, or null
    std::int64_t evaluation_batch = 32;               ///< examples evaluated at once
    std::string vocabulary;                           ///< the bytes of vocab.txt, to be written with the model
    text::TokenizerOptions tokenizer = {};            ///< that go with it
    bool next_sentence = true;                        ///< false: masked words alone are learnt
  };
  PretrainingObjective(const bert::Config& config, const Inputs& inputs, const distributed::Replica& self);

  nn::Module& model() override { return model_; }
  /// Where words are learnt alone, the pooler and the head of next sentences keep their values.
  std::vector<nn::Part> parts() override;
  std::int64_t examples(std::int64_t epoch) override { return inputs_.training.examples(epoch); }
  void read_ahead(const training::StepExamples& step, const distributed::Share& mine) override;
  std::int64_t begin_step(const training::StepExamples& step, const distributed::Share& mine) override;
  std::vector<training::LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override;
  training::Metrics evaluate() override;
  /// What stands at each mask of a few of the held-out examples, and what the model takes it for.
  std::optional<training::Samples> samples() const override;
  std::optional<double> score(const training::Metrics&) const override { return std::nullopt; }
  std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t count) const override;
  std::size_t data_bytes() const override;
  std::size_t bytes_of_steps(std::int64_t examples) const override;
  std::int64_t tokens(std::int64_t epoch, std::int64_t example) const override {
    return inputs_.training.tokens(epoch, example);
  }

 private:
  bert::DirectoryFiles directory() const override {
    return {.config = config_, .vocabulary = inputs_.vocabulary, .tokenizer = inputs_.tokenizer};
  }
  using Examples = std::vector<data::PretrainingExample>;
  struct Reading {
    training::StepExamples step;
    std::future<Examples> examples;
  };
  /// Sums over evaluated examples. The right ones are numbers of guesses.
  struct Sums {
    double masked_lm_loss = 0, next_sentence_loss = 0, masked_lm_right = 0, next_sentence_right = 0, masked_tokens = 0;
  };
  struct Packed;

  Examples read(const training::StepExamples& step, const distributed::Share& mine) const;
  /// `numbers` name the examples.
  Packed pack(std::span<const data::PretrainingExample> examples, std::span<const std::int64_t> numbers) const;
  Sums evaluate_batch(std::int64_t first, std::int64_t count) const;

  const bert::Config config_;
  const Inputs inputs_;
  const distributed::Replica& self_;
  bert::ForPretraining model_;
  training::StepExamples step_;
  distributed::Share mine_;    // of the step's examples
  Examples examples_;          // those
  double masked_count_ = 0;    // in the whole step
  std::deque<Reading> ahead_;  // the step that is begun next and the one after it, each read by its own thread
};

}  // namespace bertrand::objectives
