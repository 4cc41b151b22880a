// What is trained: a model, its examples, and the loss of some of them. pretrain and finetune each have one.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distributed/share.h"
#include "nn/parts.h"
#include "nn/weights.h"

namespace bertrand::distributed {
class Replica;
}

namespace bertrand::training {

/// A figure with the name it has in metrics.jsonl.
struct Metric {
  std::string name;
  double value = 0;
};
using Metrics = std::vector<Metric>;

/// A part of the loss, one element, already divided by the counts of the whole step: the parts of all micro-batches add
/// up to the step's own. The loss of a step is the sum of all parts, so a total never stands beside its parts.
struct LossPart {
  std::string name;  ///< masked_lm_loss; "loss" if there is one part, which has no other name
  Variable value;
};

/// What a model says of a few fixed held-out examples.
struct Samples {
  std::string json;      ///< a list; empty: nothing goes into samples.jsonl
  std::string markdown;  ///< the same for people
};

/// The examples of one optimizer step by their numbers, in the order they are used.
struct StepExamples {
  std::int64_t epoch = 0;  ///< from 0
  std::vector<std::int64_t> numbers;
  double epochs_after = 0;  ///< passes over the data that are made when the step is done
  bool operator==(const StepExamples&) const = default;
};

/// One replica's view of the work. Everything random in it is a function of (seed, epoch, example) or of the key given.
/// All replicas call begin_step and evaluate together.
class Objective {
 public:
  virtual ~Objective() = default;

  // What a step needs.

  /// Without memory until a ParameterSet gives it some.
  virtual nn::Module& model() = 0;
  /// The parts of the model that --freeze and --layer-decay know; none if they know nothing of it.
  virtual std::vector<nn::Part> parts() { return {}; }
  /// How many examples this epoch (from 0) has; they are numbered from 0 in file order.
  virtual std::int64_t examples(std::int64_t epoch) = 0;
  /// Names the step after the one that is begun next, so that its examples `mine`, those that this replica computes,
  /// can be read while that one is computed.
  virtual void read_ahead(const StepExamples&, const distributed::Share& /*mine*/) {}
  /// Host work of a step, before any of its losses: the examples `mine` that this replica computes, masked, and the
  /// counts that the losses are divided by, those of all replicas together. Returns the tokens of the whole step.
  virtual std::int64_t begin_step(const StepExamples& step, const distributed::Share& mine) = 0;
  /// The loss of examples [first, first + count) of the step begun last, which lie in this replica's share: one
  /// micro-batch. Dropout draws from `key`.
  virtual std::vector<LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t key) = 0;

  // Evaluation.

  /// Figures on held-out data, names beginning with eval_; empty if there is none. The same on every replica, each
  /// of which computes its share. Called under NoGrad. Throws Error(Failure::interrupted) on all replicas if one was
  /// asked to stop; then it has no effect.
  virtual Metrics evaluate() = 0;
  /// What the model says now of some examples that are the same each time; none if there are no such. Called on the
  /// first replica alone after evaluate(), under NoGrad, and draws nothing.
  virtual std::optional<Samples> samples() const { return {}; }
  /// What the best model is chosen by, higher is better; none: the last model is the result.
  virtual std::optional<double> score(const Metrics& evaluation) const = 0;
  /// Further (key, text) of eval_results.json: what the figures mean and which of them decide.
  virtual std::vector<std::pair<std::string, std::string>> figures_in_words() const { return {}; }
  /// Writes files about the last evaluation beside the model that did best in it. Called on the first replica.
  virtual void write_evaluation(io::Files&, const std::filesystem::path& /*directory*/) const {}

  // Saving.

  /// Writes the model into a directory that exists, each file durable: model.safetensors, and what else opens it again.
  /// Returns the CRC-32C of each tensor.
  virtual std::map<std::string, std::uint32_t> save(io::Files& files, const std::filesystem::path& directory,
                                                    const nn::ParameterSet& parameters) const;
  /// Fills the parameters from a directory that save() wrote. Throws Error(Failure::model).
  virtual void load(const std::filesystem::path& directory, nn::ParameterSet& parameters) const;
  /// Bytes that save() writes beside the weights, about.
  virtual std::size_t bytes_beside_weights() const { return 0; }

  // For the plan only.

  /// The same model on another replica, with made-up examples 0, 1, … of which there are `count`, or fewer if no epoch
  /// has so many. Together they take at least the memory of any `count` examples of the run, in a micro-batch of any
  /// epoch. Its evaluate() takes at least the memory of evaluating, `count` examples at a time, and its figures mean
  /// nothing. This and that replica must outlive it.
  virtual std::unique_ptr<Objective> largest(const distributed::Replica& self, std::int64_t count) const = 0;
  /// Bytes of the examples themselves, held in memory for the whole run.
  virtual std::size_t data_bytes() const = 0;
  /// Bytes of the examples that are read for steps, of each of which this replica computes `examples`. 0 if
  /// data_bytes() has them all.
  virtual std::size_t bytes_of_steps(std::int64_t /*examples*/) const { return 0; }
  /// Bytes on the host, at most, of the outputs that the first replica keeps of an evaluation and of what follows from
  /// them; others take less.
  virtual std::size_t bytes_of_outputs() const { return 0; }
  /// Tokens of one example.
  virtual std::int64_t tokens(std::int64_t epoch, std::int64_t example) const = 0;
};

}  // namespace bertrand::training
