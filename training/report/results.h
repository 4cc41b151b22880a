// eval_results.txt and eval_results.json: what the evaluation of a model came to.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/files.h"
#include "training/step/objective.h"

namespace bertrand::training {

struct Results {
  Metrics metrics;
  std::optional<std::int64_t> global_step = {};  ///< of the model, if it was trained
  /// What metrics mean, by their names, and best_model_by. For the JSON alone.
  std::vector<std::pair<std::string, std::string>> words = {};
};

/// `key = value` lines, sorted; values read back to the same number.
std::string results_text(const Results& results);

/// Writes both files into a run directory. Throws Error(Failure::io).
void write_results(io::Files& files, const std::filesystem::path& directory, const Results& results);

}  // namespace bertrand::training
