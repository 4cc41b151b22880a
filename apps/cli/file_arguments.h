// Files that a command line names, looked at before any work begins.
#pragma once
#include <filesystem>
#include <vector>

namespace bertrand::cli {

/// Throws Error: an input that is no readable file, an output that is one of the inputs or given twice, an output in a
/// directory that does not exist. Returns the bytes of all inputs.
double check_files(const std::vector<std::filesystem::path>& inputs, const std::vector<std::filesystem::path>& outputs);

/// Throws Error(Failure::input) where one of a run's inputs is no file that can be read twice: the data, and then what
/// identifies it.
void check_run_inputs(const std::vector<std::filesystem::path>& inputs);
/// Throws Error where --profile (may be empty) names what cannot be written or one of the inputs.
void check_profile(const std::filesystem::path& profile, const std::vector<std::filesystem::path>& inputs);

}  // namespace bertrand::cli
