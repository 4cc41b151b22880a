// The order of the data: which examples each step uses. It is a function of the seed and of the place in the data.
#pragma once
#include <cstdint>
#include <vector>

#include "training/run/settings.h"
#include "training/step/objective.h"

namespace bertrand::training {

/// A place in the data: step `step` of epoch `epoch`, both from 0.
struct Position {
  std::int64_t epoch = 0, step = 0;
};

/// The numbers of an epoch's examples in the order they are used: a function of (seed, epoch) alone; file order without
/// shuffling.
std::vector<std::int64_t> epoch_order(const Settings& settings, std::int64_t epoch, std::int64_t examples);

class DataOrder {
 public:
  DataOrder(const Settings& settings, Objective& objective) : settings_(settings), objective_(objective) {}

  /// The examples of the step at this place. The last step of an epoch may have fewer than a batch.
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
  std::vector<std::int64_t> order_;  // of the examples of ordered_epoch_
};

}  // namespace bertrand::training
