// From --task and its flags to the task itself.
#pragma once
#include <memory>

#include "apps/finetune/options.h"
#include "bert/objectives/finetuning_task.h"

namespace bertrand::finetune {

/// Reads the files of the run. `config` is the start model's; the tokenizer must outlive the task.
std::unique_ptr<objectives::FineTuningTask> make_task(const Options& options, const bert::Config& config,
                                                      const text::Tokenizer& tokenizer);

}  // namespace bertrand::finetune
