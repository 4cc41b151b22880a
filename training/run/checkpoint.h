// What a checkpoint of a training run holds: the model directory, the optimizer's moments, and where the run stands.
// All tensors are the f32 masters' and their moments (f64 for f64), so that a run may go on in another of f32, bf16 and
// f16.
#pragma once
#include <functional>

#include "nn/tensor_file.h"
#include "optim/optimizer.h"
#include "training/run/checkpoint_store.h"
#include "training/run/run_state.h"

namespace bertrand::training {

/// Everything that changes while training.
struct Training {
  const Objective& objective;
  nn::ParameterSet& parameters;
  optim::Optimizer& optimizer;
};

/// Bytes that a checkpoint takes on disk, about.
std::size_t checkpoint_bytes(const Training& training);

/// Writes every file of a checkpoint but the manifest into `directory`.
TensorChecksums write_checkpoint(io::Files& files, const std::filesystem::path& directory, const Training& training,
                                 const RunState& state, const Conditions& conditions);

struct Restored {
  RunState state;
  std::vector<std::string> changes;  ///< of Conditions::changes_since()
};

/// What kStateFile of a checkpoint or kEndedFile of a run says. Throws Error(Failure::usage) if settings or input files
/// are others than `conditions`.
Restored read_state(const std::filesystem::path& file, const Conditions& conditions);

/// Fills parameters and moments from a checkpoint that verifies and says where the run stands, which the optimizer is
/// still to be told. Throws Error(Failure::usage) if settings or input files are others than `conditions`,
/// Error(Failure::model) if the checkpoint is of another model.
Restored restore_checkpoint(const std::filesystem::path& directory, const Training& training,
                            const Conditions& conditions);

/// Throws Error(Failure::usage) as read_state() does, before anything is planned or loaded, if the newest checkpoint in
/// `output`, or without any the state that the run ended in, is of other settings or input files. One that cannot be
/// read or is damaged is left to whoever looks for the newest that verifies.
void check_resumable(const std::filesystem::path& output, const Conditions& conditions);

/// For a run that is resumed: its newest checkpoint that verifies, which has the model's shape and vocabulary too, with
/// a warning, if one of the files that it began with is gone. Empty if all are there (empty names are none) or no
/// checkpoint verifies.
std::filesystem::path checkpoint_in_place_of(const std::vector<std::filesystem::path>& files,
                                             const std::filesystem::path& output);

nn::Moments moments_of(const Training& training);

/// Fills the moments that a run begins with and returns the file that they come from.
using LoadMoments = std::function<std::string(const nn::Moments&)>;

/// Fills the moments from the run or checkpoint in `directory`: the checkpoint's own, or those of the newest checkpoint
/// of the run there that verifies. Throws Error(Failure::model), which says what was looked for, or if a moment is
/// missing or of another shape.
std::string load_moments(const std::filesystem::path& directory, const nn::Moments& moments);

/// Puts the files of the model into `directory`, each in one step, so that a reader always finds a whole model.
void publish_model(io::Files& files, const std::filesystem::path& directory, const Objective& objective,
                   const nn::ParameterSet& parameters);

}  // namespace bertrand::training
