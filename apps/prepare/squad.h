// prepare squad: TFRecords of answer-span features, as google-research/bert's run_squad.py writes them.
#pragma once
#include <filesystem>

#include "bert/tasks/squad_features.h"

namespace bertrand::prepare {

struct SquadRecordsOptions {
  std::filesystem::path input, output, vocab_file;
  bool cased = false;
  tasks::SquadOptions features;
};

void write_squad(const SquadRecordsOptions& options);

}  // namespace bertrand::prepare
