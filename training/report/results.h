// eval_results.txt and eval_results.json: what the evaluation of a model came to.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "io/files.h"

namespace bertrand::training {

/// `key = value` lines, sorted; values read back to the same double.
std::string results_text(const std::map<std::string, double>& results);

/// Writes both files into a run directory. Throws Error(Failure::io).
void write_results(io::Files& files, const std::filesystem::path& directory,
                   const std::map<std::string, double>& results);

}  // namespace bertrand::training
