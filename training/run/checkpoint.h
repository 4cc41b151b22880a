// What a checkpoint of a training run holds: the model directory, the optimizer's moments, and where the run stands.
// All tensors are the f32 masters' and their moments (f64 for f64), so that a run may go on in another of f32, bf16 and
// f16.
#pragma once
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

/// Fills parameters and moments from a checkpoint that verifies and says where the run stands. Throws
/// Error(Failure::usage) where settings or input files are others than `conditions`, Error(Failure::model) where the
/// checkpoint is of another model.
Restored restore_checkpoint(const std::filesystem::path& directory, const Training& training,
                            const Conditions& conditions);

/// The file with the moments that belong to the model in `directory`: the checkpoint's own, or that of the newest
/// checkpoint of the run there that verifies. Throws Error(Failure::model), which says what was looked for.
std::filesystem::path find_moments(const std::filesystem::path& directory);

/// Fills the moments from a file of a checkpoint, by the names of the parameters. Throws Error(Failure::model) if a
/// moment is missing or of another shape.
void load_moments(const std::filesystem::path& file, const Training& training);

/// Puts the model's four files into `directory`, each in one step, so that a reader always finds a whole model.
void publish_model(io::Files& files, const std::filesystem::path& directory, const Objective& objective,
                   const nn::ParameterSet& parameters);

}  // namespace bertrand::training
