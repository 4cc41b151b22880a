// The order of the data: which examples each step uses. It is a function of the seed and of the place in the data.
#pragma once
#include <cstdint>

#include "tensor/permutation.h"
#include "training/run/settings.h"
#include "training/step/objective.h"

namespace bertrand::training {

/// A place in the data: step `step` of epoch `epoch`, both from 0.
struct Position {
  std::int64_t epoch = 0, step = 0;
};

/// The order in which an epoch's examples are used: a function of (seed, epoch) alone; file order without shuffling. It
/// is computed place by place, so that it takes no memory.
class EpochOrder {
 public:
  EpochOrder(const Settings& settings, std::int64_t epoch, std::int64_t examples);

  std::int64_t size() const { return static_cast<std::int64_t>(permutation_.size()); }
  /// The number of the example that is used at place `i`.
  std::int64_t operator[](std::int64_t i) const {
    return shuffled_ ? static_cast<std::int64_t>(permutation_[static_cast<std::uint64_t>(i)]) : i;
  }

 private:
  bool shuffled_;
  Permutation permutation_;
};

class DataOrder {
 public:
  DataOrder(const Settings& settings, Objective& objective) : settings_(settings), objective_(objective) {}

  /// The examples of the step at this place. The last step of an epoch may have fewer than a batch. Throws
  /// Error(Failure::model) if the data have no such step: a damaged checkpoint said so.
  StepExamples at(const Position& position);
  /// The place of the step after the one at `position`.
  Position after(const Position& position) const;
  /// Passes over the data that are made before the step at `position`.
  double epochs(const Position& position) const;

 private:
  std::int64_t examples(std::int64_t epoch) const;

  const Settings& settings_;
  Objective& objective_;
  std::int64_t ordered_epoch_ = -1;
  std::int64_t count_ = 0;  // of the examples of ordered_epoch_
};

}  // namespace bertrand::training
