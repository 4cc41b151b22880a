// The host runs ahead of the card: nothing in a step waits for it.
#include <doctest/doctest.h>

#include "apps/training/step.h"
#include "bert/model/heads.h"
#include "cuda/emulated_card.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

const bert::Config kConfig{.vocab_size = 40,
                           .hidden_size = 32,
                           .num_hidden_layers = 2,
                           .num_attention_heads = 2,
                           .intermediate_size = 64,
                           .max_position_embeddings = 16};

/// A BERT and examples of 5 to 9 tokens, two of them masked.
class SmallPretraining : public Objective {
 public:
  explicit SmallPretraining(Backend& backend) : backend_(backend), model_(kConfig) {}

  nn::Module& model() override { return model_; }
  std::int64_t examples(std::int64_t) override { return 100; }
  std::int64_t begin_step(const StepExamples& step, const distributed::Share&) override {
    step_ = step;
    return 0;
  }
  std::vector<LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) override {
    std::vector<bert::Sequence> sequences;
    std::vector<std::int32_t> rows, labels, next;
    std::int32_t row = 0;
    for (std::int64_t i = first; i < first + count; ++i) {
      const std::int64_t number = step_.numbers[static_cast<std::size_t>(i)], length = 5 + number % 5;
      bert::Sequence sequence{.key = static_cast<std::uint64_t>(number)};
      for (std::int64_t t = 0; t < length; ++t) {
        sequence.token_ids.push_back(static_cast<std::int32_t>((7 * number + 3 * t) % 40));
        sequence.token_types.push_back(t < 3 ? 0 : 1);
      }
      sequences.push_back(sequence);
      for (const std::int32_t masked : {1, 3}) {
        rows.push_back(row + masked);
        labels.push_back(static_cast<std::int32_t>((number + masked) % 40));
      }
      next.push_back(static_cast<std::int32_t>(number % 2));
      row += static_cast<std::int32_t>(length);
    }
    const auto masked = static_cast<Dim>(rows.size()), all = static_cast<Dim>(step_.numbers.size());
    const bert::PackedBatch batch = bert::pack(sequences, backend_);
    const auto result = model_(batch,
                               {.masked_rows = ops::from_host(rows, {masked}, backend_),
                                .masked_labels = ops::from_host(labels, {masked}, backend_),
                                .next_sentence = ops::from_host(next, {count}, backend_),
                                .masked_count = 2.0 * static_cast<double>(all),
                                .sequence_count = static_cast<double>(all)},
                               batch.randomness(key), bert::ForPretraining::Keep::losses);
    return {{"masked_lm_loss", result.masked_lm_loss}, {"next_sentence_loss", result.next_sentence_loss}};
  }
  Metrics evaluate() override { return {}; }
  std::optional<double> score(const Metrics&) const override { return std::nullopt; }
  bert::DirectoryFiles directory() const override { return {.config = kConfig}; }
  std::size_t activation_bytes(const StepExamples&, DType) const override { return 0; }
  std::size_t data_bytes() const override { return 0; }
  std::int64_t tokens(std::int64_t, std::int64_t) const override { return 1; }

 private:
  Backend& backend_;
  bert::ForPretraining model_;
  StepExamples step_;
};

struct Course {
  std::vector<double> figures;
  std::vector<float> values;
  std::int64_t waits = 0;  ///< for the card, between the first step and the first look at one
  bool operator==(const Course& other) const { return figures == other.figures && values == other.values; }
};

/// Four steps of two micro-batches, the host `ahead` steps ahead of what it has looked at.
Course train(DType dtype, optim::Method method, std::size_t ahead) {
  const auto card = testing::emulated_card();
  SmallPretraining objective(*card);
  nn::ParameterSet parameters(objective.model(), *card, {.dtype = dtype});
  optim::Optimizer optimizer(parameters, {.method = method});
  const distributed::Replica self(*card);
  Stepper stepper({objective, parameters, optimizer, self}, {.seed = 1, .micro_batch_size = 2});
  Course course;
  std::vector<StartedStep> started;
  const auto finish_first = [&] {
    const StepResult result = stepper.finish(started.front());
    started.erase(started.begin());
    for (const Metric& loss : result.losses) course.figures.push_back(loss.value);
    course.figures.push_back(result.grad_norm);
  };
  const std::int64_t waits = cuda::emulation::synchronizations();
  for (std::int64_t i = 0; i < 4; ++i) {
    started.push_back(stepper.start({.epoch = 0, .numbers = {i, 5 * i + 1, 2 * i + 30}}, i + 1, 1e-3));
    if (started.size() > ahead) finish_first();
  }
  while (!started.empty()) finish_first();
  course.waits = cuda::emulation::synchronizations() - waits;
  course.values = ops::to_host<float>(parameters.values());
  return course;
}

}  // namespace

TEST_CASE("steps are asked for, and looked at, without waiting for all that the card has to do; and looking late changes no bit") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16})
    for (const optim::Method method : {optim::Method::adamw, optim::Method::lamb}) {
      CAPTURE(name_of(dtype));
      const Course at_once = train(dtype, method, 0), one_later = train(dtype, method, 1), at_the_end = train(dtype, method, 4);
      CHECK(at_once.waits == 0);
      CHECK(one_later.waits == 0);
      CHECK(at_the_end.waits == 0);
      CHECK(at_once == one_later);
      CHECK(at_once == at_the_end);
      CHECK(at_once.figures.size() == 16);
      CHECK(at_once.figures.front() > 1);
    }
}
