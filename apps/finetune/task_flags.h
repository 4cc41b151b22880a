// Which flags go with which tasks, and what the run that made a model had for them.
#pragma once
#include "apps/finetune/options.h"

namespace bertrand::finetune {

/// Throws Error(Failure::usage) for a flag of another task that has not its default.
void refuse_flags_of_other_tasks(const Options& options);

/// For a model that is used as it is: flags that say how the task reads its data, and are not given, get the values of
/// the run of the same task that made --model, if its directory has the record of one. Columns belong together: they
/// are taken if none is given, and if the data has those that are named. A length is taken if --max-seq-length, which
/// must be known, leaves room for it. Returns what was taken, as "--max-query-length 32, --doc-stride 64". Throws
/// Error(Failure::model) with the record's name for a value that the flag does not take.
std::string take_flags_of_model(Options& options);

}  // namespace bertrand::finetune
