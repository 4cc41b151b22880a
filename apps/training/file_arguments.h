// Files that a command line names, looked at before any work begins.
#pragma once
#include <filesystem>
#include <vector>

namespace bertrand::training {

/// Throws Error: an input that is no readable file, an output that is one of the inputs or given twice, an output in a
/// directory that does not exist. Returns the bytes of all inputs.
double check_files(const std::vector<std::filesystem::path>& inputs, const std::vector<std::filesystem::path>& outputs);

/// Throws Error(Failure::input) where one of a run's inputs is no file that can be read twice: the data, and then what
/// identifies it. Throws Error where `trace` (may be empty) cannot be written or is one of the inputs.
void check_run_files(const std::vector<std::filesystem::path>& inputs, const std::filesystem::path& trace);

}  // namespace bertrand::training
