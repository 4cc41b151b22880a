// One replica's state of a run: how it gets to disk, and how a run goes on from there.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "training/run/checkpoint.h"
#include "training/run/checkpoint_store.h"
#include "training/run/published_model.h"
#include "training/run/run_files.h"
#include "training/run/run_log.h"
#include "training/run/run_state.h"
#include "training/run/settings.h"

namespace bertrand::training {

class SaveAndResume {
 public:
  struct Parts {
    const Settings& settings;
    const Conditions& conditions;
    Training training;  ///< what a checkpoint holds
    const distributed::Replica& self;
    RunLog& log;
    io::Files& files;                               ///< of the run's directory
    std::vector<std::string_view> evaluation = {};  ///< names of what is written there about one
  };
  explicit SaveAndResume(const Parts& parts);

  /// The state of the newest checkpoint that verifies, with its parameters and moments. Without any checkpoint: that in
  /// which a run that kept its model alone ended, with the parameters of this model, if no step is left to make; else
  /// none. For the first replica. Throws Error(Failure::model) if there are checkpoints and all are damaged, or another
  /// model than the run ended with, and Error(Failure::usage) if the run was begun with other settings or files.
  std::optional<RunState> newest_state(std::int64_t total_steps);
  /// For a run that begins: the moments that `load` fills. The count of steps stays 0, for the bias correction too, as
  /// in the second phase of NVIDIA's PyTorch trainer; and so does the loss scale. For the first replica.
  void begin_with_moments(const LoadMoments& load);
  /// Gives all replicas the state and parameters of the first one, and its moments if it has any: a run that goes on
  /// does, and one that begins if `has_moments` says so.
  void share(RunState& state, bool has_moments);
  /// Throws Error(Failure::io) if the disk has no room for one checkpoint: better now than at the first save.
  void check_space() const;

  /// All replicas save together. `saved` is called on each replica when it may name the new checkpoint. Afterwards the
  /// checkpoints that --keep does not count are removed.
  void save(RunState& state, const std::function<void()>& saved);
  /// Puts the parameters into the run's directory as the best model, or as the final one if nothing is scored.
  void publish(BestModel& best) { published_.publish(best); }
  /// Sees to it that the run's directory holds the result, the final model or the best one, and no more checkpoints
  /// than --keep says.
  void publish_result(RunState& state);

  /// Keeps the state in place of all checkpoints: the run's directory holds the result, and no step goes on from here.
  /// For the first replica; the others call forget_checkpoint() when they know of it.
  void replace_checkpoints(RunState& state);
  void forget_checkpoint() { checkpoint_ = 0; }

  /// Of the newest state that is kept, in a checkpoint or as that of the end.
  std::int64_t saved_step() const { return saved_step_; }
  /// The newest checkpoint, or "none".
  std::string last_checkpoint() const;

 private:
  void settle_best_model(RunState& state, const std::filesystem::path& checkpoint, std::int64_t total_steps);
  std::optional<RunState> ended_state(std::int64_t total_steps);
  void say_resumed(const std::filesystem::path& from, const std::vector<std::string>& changes);
  void take_stock(RunState& state) const;
  void write_checkpoint(RunState& state);

  const Parts parts_;
  CheckpointStore store_;
  PublishedModel published_;
  std::int64_t saved_step_ = 0;
  std::int64_t checkpoint_ = 0;  // step of the newest one that is wholly there
};

}  // namespace bertrand::training
