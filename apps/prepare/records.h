// prepare records: pre-training records from plain text.
#pragma once
#include <filesystem>
#include <vector>

#include "apps/prepare/tokenizer_flags.h"
#include "bert/data/google_instances.h"

namespace bertrand::prepare {

struct RecordsOptions {
  TokenizerFlags tokenizer;
  std::vector<std::filesystem::path> inputs, outputs;
  data::GoogleOptions google;
  bool overwrite = false;  ///< replaces files that are there
  int threads = 1;
};

/// Writes the output files, all of them or none. Throws Error.
void write_records(const RecordsOptions& options);

}  // namespace bertrand::prepare
