// Files that a command line names, looked at before any work begins.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace bertrand::io {

/// Throws Error: an input that is no readable file, an output that is one of the inputs or given twice, an output in a
/// directory that does not exist. Returns the bytes of all inputs.
double check_files(const std::vector<std::filesystem::path>& inputs, const std::vector<std::filesystem::path>& outputs);

/// Throws Error if `output`, the file of --`flag`, cannot be written or is one of the inputs.
void check_output(const std::string& flag, const std::filesystem::path& output,
                  const std::vector<std::filesystem::path>& inputs);

/// Throws Error(Failure::usage) if what is at `directory`, that of --`flag`, is none.
void check_directory(const std::string& flag, const std::filesystem::path& directory);

/// Throws Error(Failure::usage) if there is anything at `directory`, that of --`flag` which is to be made, or nothing
/// that it could be made in.
void check_new_directory(const std::string& flag, const std::filesystem::path& directory);

/// Throws Error(Failure::input) if one of these files is a pipe or a device. A run reads its inputs twice: the data,
/// and the checksum that identifies the file.
void check_readable_twice(const std::vector<std::filesystem::path>& inputs);

}  // namespace bertrand::io
