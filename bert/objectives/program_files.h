// What the programs that train BERT call the files of a run.
#pragma once
#include "training/run/run_files.h"

namespace bertrand::objectives {

/// Those of pretrain and finetune together: each may overwrite a run of the other.
training::ProgramFiles program_files();

}  // namespace bertrand::objectives
