// The steps and the evaluation of pre-training.
#include "bert/objectives/pretraining.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>

#include "bert/data/largest_examples.h"
#include "bert/objectives/pretraining_samples.h"
#include "distributed/exchange.h"
#include "io/error.h"
#include "io/signals.h"

namespace bertrand::objectives {

namespace {

/// How many rows have their largest logit at the label.
std::int64_t count_right(const Variable& logits, const Tensor& labels) {
  const auto guesses = ops::to_host<std::int32_t>(ops::argmax(logits.value()));
  const auto truth = ops::to_host<std::int32_t>(labels);
  std::int64_t right = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) right += guesses[i] == truth[i];
  return right;
}

/// What LargestPretraining is trained on. A base class, because it must be there first.
struct LargestInputs {
  data::LargestExamples training;
  std::unique_ptr<data::LargestExamples> evaluation;
  bool next_sentence;
};

class LargestPretraining : private LargestInputs, public PretrainingObjective {
 public:
  LargestPretraining(const bert::Config& config, LargestInputs inputs, const distributed::Replica& self,
                     std::int64_t count)
      : LargestInputs(std::move(inputs)),
        PretrainingObjective(config,
                             {.training = LargestInputs::training,
                              .evaluation = LargestInputs::evaluation.get(),
                              .evaluation_batch = count,
                              .vocabulary = {},
                              .next_sentence = LargestInputs::next_sentence},
                             self) {}
};

}  // namespace

PretrainingObjective::PretrainingObjective(const bert::Config& config, const Inputs& inputs,
                                           const distributed::Replica& self)
    : config_(config), inputs_(inputs), self_(self), model_(config) {}

std::vector<nn::Part> PretrainingObjective::parts() {
  std::vector<nn::Part> parts = BertObjective::parts();
  if (inputs_.next_sentence) return parts;
  std::ranges::find(parts, "pooler", &nn::Part::name)->is_idle = true;
  parts.push_back({.name = "nsp", .prefix = "cls.seq_relationship.", .is_idle = true});
  return parts;
}

/// A micro-batch as the model takes it, with its own counts to divide the losses by.
struct PretrainingObjective::Packed {
  bert::PackedBatch batch;
  bert::ForPretraining::Targets targets;
};

PretrainingObjective::Packed PretrainingObjective::pack(std::span<const data::PretrainingExample> examples,
                                                        std::span<const std::int64_t> numbers) const {
  std::vector<bert::Sequence> sequences;
  std::vector<std::int32_t> masked_rows, masked_labels, next_sentence;
  std::int32_t first_row = 0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const data::PretrainingExample& e = examples[i];
    sequences.push_back({e.token_ids, e.token_types, static_cast<std::uint64_t>(numbers[i])});
    for (const std::int32_t position : e.masked_positions) masked_rows.push_back(first_row + position);
    masked_labels.insert(masked_labels.end(), e.masked_ids.begin(), e.masked_ids.end());
    next_sentence.push_back(e.next_sentence_label);
    first_row += static_cast<std::int32_t>(e.token_ids.size());
  }
  bert::check_sequences(sequences, config_);
  const auto masked = static_cast<Dim>(masked_rows.size()), count = static_cast<Dim>(examples.size());
  Backend& backend = self_.backend();
  Packed packed{.batch = bert::pack(sequences, backend),
                .targets = {.masked_rows = ops::from_host(masked_rows, {masked}, backend),
                            .masked_labels = ops::from_host(masked_labels, {masked}, backend),
                            .next_sentence = {},
                            .masked_count = std::max(1.0, static_cast<double>(masked)),
                            .sequence_count = static_cast<double>(count)}};
  if (inputs_.next_sentence) packed.targets.next_sentence = ops::from_host(next_sentence, {count}, backend);
  return packed;
}

PretrainingObjective::Examples PretrainingObjective::read(const training::StepExamples& step,
                                                          const distributed::Share& mine) const {
  Examples examples;
  for (std::int64_t i = mine.first; i < mine.end(); ++i)
    examples.push_back(inputs_.training.example(step.epoch, step.numbers[static_cast<std::size_t>(i)]));
  return examples;
}

void PretrainingObjective::read_ahead(const training::StepExamples& step, const distributed::Share& mine) {
  ahead_.push_back({step, std::async(std::launch::async, [this, step, mine] { return read(step, mine); })});
}

std::int64_t PretrainingObjective::begin_step(const training::StepExamples& step, const distributed::Share& mine) {
  step_ = step;
  mine_ = mine;
  if (const auto reading = std::ranges::find(ahead_, step, &Reading::step); reading != ahead_.end()) {
    std::future<Examples> examples = std::move(reading->examples);
    ahead_.erase(ahead_.begin(), reading + 1);
    examples_ = examples.get();
  } else {
    examples_ = read(step, mine);
  }
  std::array<double, 2> counts{};  // masked tokens, all tokens; exact as long as they are below 2^53
  for (const data::PretrainingExample& example : examples_) {
    counts[0] += static_cast<double>(example.masked_positions.size());
    counts[1] += static_cast<double>(example.token_ids.size());
  }
  distributed::sum(self_, counts);
  masked_count_ = std::max(1.0, counts[0]);  // words longer than may be masked leave none
  return static_cast<std::int64_t>(counts[1]);
}

std::vector<training::LossPart> PretrainingObjective::loss(std::int64_t first, std::int64_t count, std::uint64_t key) {
  const auto begin = static_cast<std::size_t>(first), size = static_cast<std::size_t>(count);
  const auto examples = std::span(examples_).subspan(static_cast<std::size_t>(first - mine_.first), size);
  Packed packed = pack(examples, std::span(step_.numbers).subspan(begin, size));
  packed.targets.masked_count = masked_count_;
  packed.targets.sequence_count = static_cast<double>(step_.numbers.size());
  const auto result =
      model_(packed.batch, packed.targets, packed.batch.randomness(key), bert::ForPretraining::Keep::losses);
  std::vector<training::LossPart> parts{{"masked_lm_loss", result.masked_lm_loss}};
  if (inputs_.next_sentence) parts.push_back({"next_sentence_loss", result.next_sentence_loss});
  return parts;
}

/// Sums over the held-out examples [first, first + count).
PretrainingObjective::Sums PretrainingObjective::evaluate_batch(std::int64_t first, std::int64_t count) const {
  std::vector<data::PretrainingExample> examples;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = first; i < first + count; ++i) {
    examples.push_back(inputs_.evaluation->example(0, i));
    numbers.push_back(i);
  }
  const Packed packed = pack(examples, numbers);
  const auto result = model_(packed.batch, packed.targets, nn::Randomness{}, bert::ForPretraining::Keep::logits);
  Sums sums{.masked_lm_loss = ops::item(result.masked_lm_loss.value()) * packed.targets.masked_count,
            .masked_lm_right = static_cast<double>(count_right(result.masked_lm_logits, packed.targets.masked_labels)),
            .masked_tokens = static_cast<double>(packed.targets.masked_labels.elements())};
  if (!inputs_.next_sentence) return sums;
  sums.next_sentence_loss = ops::item(result.next_sentence_loss.value()) * packed.targets.sequence_count;
  sums.next_sentence_right =
      static_cast<double>(count_right(result.next_sentence_logits, packed.targets.next_sentence));
  return sums;
}

training::Metrics PretrainingObjective::evaluate() {
  if (!inputs_.evaluation) return {};
  const std::int64_t count = inputs_.evaluation->examples(0), size = inputs_.evaluation_batch;
  const std::int64_t batches = (count + size - 1) / size;
  using Numbers = std::array<double, sizeof(Sums) / sizeof(double)>;  // Sums as replicas exchange them
  std::vector<double> of_batches(static_cast<std::size_t>(batches) * std::tuple_size_v<Numbers>);
  constexpr std::int64_t kPart = 16;  // batches after which all replicas look who is to stop
  if (!distributed::work_on_share(self_, batches, kPart, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t b = first; b < end && !io::stop_requested(); ++b)
          std::ranges::copy(std::bit_cast<Numbers>(evaluate_batch(b * size, std::min(size, count - b * size))),
                            of_batches.begin() + b * static_cast<std::ptrdiff_t>(std::tuple_size_v<Numbers>));
      }))
    fail(Failure::interrupted, "interrupted while evaluating: nothing was written; hint: run the command again");
  distributed::gather<double>(self_, of_batches, batches);
  Numbers numbers{};
  for (std::size_t i = 0; i < of_batches.size(); ++i) numbers[i % numbers.size()] += of_batches[i];
  const auto sums = std::bit_cast<Sums>(numbers);
  const auto sequences = static_cast<double>(count), tokens = std::max(1.0, sums.masked_tokens);
  const double masked_lm_loss = sums.masked_lm_loss / tokens, next_sentence_loss = sums.next_sentence_loss / sequences;
  training::Metrics metrics{{"eval_loss", masked_lm_loss + next_sentence_loss},
                            {"eval_masked_lm_loss", masked_lm_loss},
                            {"eval_masked_lm_accuracy", sums.masked_lm_right / tokens}};
  if (!inputs_.next_sentence) return metrics;
  metrics.push_back({"eval_next_sentence_loss", next_sentence_loss});
  metrics.push_back({"eval_next_sentence_accuracy", sums.next_sentence_right / sequences});
  return metrics;
}

/// No more than an evaluation takes at once, so that the plan's memory holds.
std::optional<training::Samples> PretrainingObjective::samples() const {
  constexpr std::int64_t kSamples = 5;
  const std::int64_t all = inputs_.evaluation->examples(0), some = std::min({kSamples, inputs_.evaluation_batch, all});
  if (some == 0) return {};
  Examples examples;
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < some; ++i) {
    numbers.push_back(i * all / some);
    examples.push_back(inputs_.evaluation->example(0, numbers.back()));
  }
  const Packed packed = pack(examples, numbers);
  const auto result = model_(packed.batch, packed.targets, nn::Randomness{}, bert::ForPretraining::Keep::logits);
  return samples_of(examples, result.masked_lm_logits.value(), inputs_.vocabulary);
}

std::unique_ptr<training::Objective> PretrainingObjective::largest(const distributed::Replica& self,
                                                                   std::int64_t count) const {
  LargestInputs inputs{
      .training = {inputs_.training, count}, .evaluation = nullptr, .next_sentence = inputs_.next_sentence};
  if (inputs_.evaluation) inputs.evaluation = std::make_unique<data::LargestExamples>(*inputs_.evaluation, count);
  return std::make_unique<LargestPretraining>(config_, std::move(inputs), self, count);
}

std::size_t PretrainingObjective::data_bytes() const {
  return inputs_.training.bytes() + (inputs_.evaluation ? inputs_.evaluation->bytes() : 0);
}

/// The step before, the step that is begun, and the one after it.
std::size_t PretrainingObjective::bytes_of_steps(std::int64_t examples) const {
  constexpr std::size_t kSteps = 3, kBlocks = 4 * 32;         // an example has four arrays, each a block of the heap
  constexpr std::size_t kOfToken = 2 * sizeof(std::int32_t);  // its id and type, or its position and what stood there
  std::size_t bytes = 0;
  for (const data::ExampleSize& size : inputs_.training.largest(examples))
    bytes +=
        sizeof(data::PretrainingExample) + kBlocks + static_cast<std::size_t>(size.tokens + size.masked) * kOfToken;
  return kSteps * bytes;
}

}  // namespace bertrand::objectives
