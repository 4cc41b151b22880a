// prepare squad: TFRecords of answer-span features, as google-research/bert's run_squad.py writes them.
#pragma once
#include <filesystem>

#include "apps/prepare/tokenizer_flags.h"
#include "bert/tasks/squad_features.h"

namespace bertrand::prepare {

struct SquadRecordsOptions {
  TokenizerFlags tokenizer;
  std::filesystem::path input, output;
  bool overwrite = false;  ///< replaces a file that is there
  tasks::SquadOptions features;
};

void write_squad(const SquadRecordsOptions& options);

}  // namespace bertrand::prepare
