// The model in a run's directory: the best one so far, or the final one if nothing is scored.
#pragma once
#include <filesystem>
#include <string>

#include "io/files.h"
#include "nn/parameter_set.h"
#include "training/run/run_state.h"
#include "training/step/objective.h"

namespace bertrand::training {

/// The best model, as the first replica publishes it. It keeps references to all that it is made of.
class PublishedModel {
 public:
  PublishedModel(const std::filesystem::path& output, const Objective& objective, nn::ParameterSet& parameters,
                 io::Files& files)
      : output_(output), objective_(objective), parameters_(parameters), files_(files) {}

  /// Puts the parameters there as they are, and notes in `best` which file it is. Throws Error.
  void publish(BestModel& best);
  /// What is wrong with the file of `best`, or "".
  std::string fault(const BestModel& best) const;
  /// Whether the checkpoint of that step is there and verifies.
  bool is_in_checkpoint(const BestModel& best) const;
  /// If something is wrong, publishes `best` again from its checkpoint, whose weights the parameters then have.
  /// Throws Error(Failure::model), with `hint`, if there is no such checkpoint.
  void mend(BestModel& best, const std::string& hint);

 private:
  std::filesystem::path checkpoint(const BestModel& best) const;

  const std::filesystem::path& output_;
  const Objective& objective_;
  nn::ParameterSet& parameters_;
  io::Files& files_;
};

}  // namespace bertrand::training
