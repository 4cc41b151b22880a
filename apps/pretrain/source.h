// What a run of pre-training begins with: a new model, that of a directory, or its own checkpoint.
#pragma once
#include "apps/pretrain/options.h"
#include "bert/directory/model_directory.h"

namespace bertrand::pretrain {

/// The shape of the model and the tokenizer that goes with it.
struct Source {
  bert::Config config;
  text::Tokenizer tokenizer;
};

/// A run that goes on needs nothing of what it began with that its checkpoints have not, so that this may be gone.
/// Throws Error(Failure::model) if configuration and vocabulary do not fit each other, and what their files throw.
Source source_of(const Options& options);

}  // namespace bertrand::pretrain
