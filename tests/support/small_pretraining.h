// A BERT that is pre-trained on examples made up on the spot, for tests of what trains it.
#pragma once
#include <algorithm>
#include <functional>
#include <iterator>

#include "bert/directory/model_directory.h"
#include "bert/network/heads.h"
#include "support/epoch_numbers.h"
#include "training/run/plan.h"
#include "training/step/step.h"

namespace support {

inline const bertrand::bert::Config kSmallPretraining{.vocab_size = 40,
                                                      .hidden_size = 32,
                                                      .num_hidden_layers = 2,
                                                      .num_attention_heads = 2,
                                                      .intermediate_size = 64,
                                                      .max_position_embeddings = 16};

/// Example n has between a half and all of the model's positions as tokens (if they are alike: all), and a seventh of
/// them are masked.
class SmallPretraining : public bertrand::training::Objective {
 public:
  SmallPretraining(const bertrand::bert::Config& config, const bertrand::distributed::Replica& self)
      : config_(config), self_(self), model_(config) {}

  bertrand::nn::Module& model() override { return model_; }
  std::int64_t examples(std::int64_t) override { return lengths_.empty() ? 24 : std::ssize(lengths_); }
  std::int64_t begin_step(const bertrand::training::StepExamples& step, const bertrand::distributed::Share&) override {
    step_ = step;
    return 0;
  }
  std::vector<bertrand::training::LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override {
    using namespace bertrand;
    std::vector<bert::Sequence> sequences;
    std::vector<std::int32_t> rows, labels, next;
    std::int32_t row = 0;
    for (std::int64_t i = first; i < first + count; ++i) {
      const std::int64_t number = step_.numbers[static_cast<std::size_t>(i)];
      bert::Sequence sequence{.key = static_cast<std::uint64_t>(number)};
      for (std::int64_t t = 0; t < tokens(0, number); ++t) {
        sequence.token_ids.push_back(static_cast<std::int32_t>((7 * number + 3 * t) % config_.vocab_size));
        sequence.token_types.push_back(t < 3 ? 0 : 1);
        if (t % 7 != 1) continue;
        rows.push_back(row + static_cast<std::int32_t>(t));
        labels.push_back(static_cast<std::int32_t>((number + t) % config_.vocab_size));
      }
      sequences.push_back(sequence);
      next.push_back(static_cast<std::int32_t>(number % 2));
      row += static_cast<std::int32_t>(tokens(0, number));
    }
    const auto masked = static_cast<Dim>(rows.size()), all = static_cast<Dim>(step_.numbers.size());
    const bert::PackedBatch batch = bert::pack(sequences, self_.backend());
    const auto result = model_(batch,
                               {.masked_rows = ops::from_host(rows, {masked}, self_.backend()),
                                .masked_labels = ops::from_host(labels, {masked}, self_.backend()),
                                .next_sentence = ops::from_host(next, {count}, self_.backend()),
                                .masked_count = 2.0 * static_cast<double>(all),
                                .sequence_count = static_cast<double>(all)},
                               batch.randomness(key), bert::ForPretraining::Keep::losses);
    return {{"masked_lm_loss", result.masked_lm_loss}, {"next_sentence_loss", result.next_sentence_loss}};
  }
  bertrand::training::Metrics evaluate() override { return {}; }
  std::optional<double> score(const bertrand::training::Metrics&) const override { return std::nullopt; }
  std::map<std::string, std::uint32_t> save(bertrand::io::Files& files, const std::filesystem::path& directory,
                                            const bertrand::nn::ParameterSet& parameters) const override {
    return bertrand::bert::write_directory(files, directory, {.config = config_}, parameters);
  }
  void load(const std::filesystem::path& directory, bertrand::nn::ParameterSet& parameters) const override {
    bertrand::bert::load_whole(directory, parameters);
  }
  std::unique_ptr<Objective> largest(const bertrand::distributed::Replica& self, std::int64_t count) const override {
    auto largest = std::make_unique<SmallPretraining>(config_, self);
    for (std::int64_t example = 0; example < 24; ++example) largest->lengths_.push_back(tokens(0, example));
    std::ranges::sort(largest->lengths_, std::greater());
    largest->lengths_.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, 24)));
    return largest;
  }
  std::size_t data_bytes() const override { return 0; }
  std::int64_t tokens(std::int64_t, std::int64_t example) const override {
    const std::int64_t half = config_.max_position_embeddings / 2;
    if (!lengths_.empty()) return lengths_[static_cast<std::size_t>(example)];
    return alike ? 2 * half : half + 5 * example % half + 1;
  }

  bool alike = false;

 private:
  const bertrand::bert::Config config_;
  const bertrand::distributed::Replica& self_;
  bertrand::bert::ForPretraining model_;
  bertrand::training::StepExamples step_;
  std::vector<std::int64_t> lengths_;  // if not as above
};

/// The most memory that a new backend has given out when the plan's steps have been made,
/// which divide its examples evenly.
inline std::size_t peak_of_steps(const bertrand::training::Settings& settings, const bertrand::training::Plan& plan,
                                 SmallPretraining& objective, const bertrand::distributed::Replica& self) {
  using namespace bertrand;
  nn::ParameterSet parameters(objective.model(), self.backend(), {.dtype = settings.precision});
  optim::Optimizer optimizer(parameters, settings.optimizer);
  training::Stepper stepper({objective, parameters, optimizer, self}, {.micro_batch_size = plan.micro_batch_size});
  for (std::int64_t step = 0; step < plan.total_steps; ++step) {
    const std::int64_t epoch = step / plan.steps_per_epoch, first = step % plan.steps_per_epoch * plan.batch_size;
    const auto order = epoch_numbers(settings, epoch, plan.examples_per_epoch);
    const auto begin = order.begin() + first;
    stepper.finish(stepper.start({.epoch = epoch, .numbers = {begin, begin + plan.batch_size}}, step + 1, 1e-4));
  }
  return self.backend().memory().peak;
}

}  // namespace support
