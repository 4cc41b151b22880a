// What a run of finetune has read before it computes anything.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/finetune/options.h"
#include "bert/directory/model_directory.h"
#include "bert/objectives/finetuning_task.h"
#include "training/run/run_training.h"

namespace bertrand::finetune {

/// Everything of a run that is on the host. The task refers to the tokenizer.
struct Job {
  const Options& options;
  std::vector<std::string> model_labels;  // of the model that is given
  std::unique_ptr<const text::Tokenizer> tokenizer;
  std::unique_ptr<const objectives::FineTuningTask> task;
  std::optional<training::InputFile> streamed_prediction = {};  // the file to predict, if it is streamed
};

/// Fills in --max-seq-length, and of a model that is used as it is --kind and what take_flags_of_model() takes, if they
/// were not given. A run that goes on needs nothing of its start model that a checkpoint has not: --model becomes that
/// if it is gone.
Job read_job(Options& options);

/// --validate-only: what the files have. Throws Error(Failure::input) after a line for each of the first bad rows.
void report_validity(const Job& job);

/// What a run must still be given to be resumed, and what all its processes must have.
training::RunIdentity identity_of(const Job& job);

/// "12 examples of dev.csv": what the model is evaluated on.
std::string evaluated_text(const Job& job);

/// What the run learns, and what it is judged by.
std::string plan_text(const Job& job);

}  // namespace bertrand::finetune
