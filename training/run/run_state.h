// Where a run stands: what resume.json of a checkpoint holds beside the tensors, and ended.json of a run that kept its
// model alone.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/json.h"
#include "optim/loss_scale.h"
#include "training/run/data_order.h"
#include "training/step/objective.h"

namespace bertrand::training {

/// A file that decides the result, so that a run is not resumed on another one.
struct InputFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;

  /// Reads all of it. Throws Error(Failure::io), Error(Failure::interrupted) if a signal asks to leave.
  static InputFile of(const std::filesystem::path& path);
};

/// What must be the same when a run is resumed.
struct Conditions {
  std::vector<std::pair<std::string, std::string>> settings;  ///< (flag, value)
  std::vector<InputFile> inputs;
  std::vector<std::string> command = {};  ///< words of the command line, as far as they are known

  /// A flag that the checkpoint does not know, as an older version wrote it, and that is not in the command, has no
  /// effect and is no difference. Throws Error(Failure::usage), naming every flag and file that differs from those of
  /// `checkpoint`. Some may differ: --steps or --epochs may be raised, --micro-batch-size lowered, --patience and, but
  /// for f64, --precision changed. Returns a line for each that does.
  std::vector<std::string> changes_since(const Conditions& checkpoint, const std::string& checkpoint_name) const;
};

/// The model with the highest score so far.
struct BestModel {
  std::optional<double> score;  ///< none: nothing was scored
  std::int64_t step = 0;
  std::uint32_t crc32c = 0;  ///< of its model.safetensors in the run's directory; 0: not known
};

/// The losses of several steps, added up in the order of the steps.
struct LossSums {
  std::int64_t steps = 0;
  Metrics sums;

  /// Begins anew if these are other losses.
  void add(const Metrics& losses);
  /// If there is one step, they are its losses to the bit.
  Metrics means() const;
};

struct RunState {
  std::int64_t steps_done = 0;         ///< skipped ones too
  optim::LossScale::State loss_scale;  ///< moves in f16 alone
  Position next;                       ///< where in the data step steps_done + 1 begins
  bool evaluation_due = false;         ///< the evaluation that belongs to steps_done has not been made yet
  Metrics evaluation;                  ///< the last one, or that of the best model if the objective scores
  BestModel best;
  std::int64_t evaluations_since_best = 0;
  LossSums unlogged;  ///< of the steps since the last line of metrics

  /// Takes in an evaluation after steps_done, and its score if there is one. Returns whether the model is now the best.
  bool note_evaluation(const Metrics& metrics, std::optional<double> score);
  /// Whether --patience, if there is any, has run out.
  bool gave_up(std::int64_t patience) const { return patience > 0 && evaluations_since_best >= patience; }
  /// Whether there is no step left to make.
  bool is_over(std::int64_t total_steps, std::int64_t patience) const {
    return steps_done >= total_steps || gave_up(patience);
  }

  io::Json to_json(const Conditions& conditions) const;
};

/// The two halves of a resume.json. Throws Error(Failure::model) naming `file` and the key if one is missing, of
/// another kind, or a number that no run comes to.
RunState parse_run_state(const io::Json& json, const std::string& file);
Conditions parse_conditions(const io::Json& json, const std::string& file);

}  // namespace bertrand::training
