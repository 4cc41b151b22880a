// Files that a command line names, looked at before any work begins.
#pragma once
#include <filesystem>
#include <vector>

namespace bertrand::training {

/// Throws Error: an input that is no readable file, an output that is one of the inputs or given twice, an output in a
/// directory that does not exist. Returns the bytes of all inputs.
double check_files(const std::vector<std::filesystem::path>& inputs, const std::vector<std::filesystem::path>& outputs);

}  // namespace bertrand::training
