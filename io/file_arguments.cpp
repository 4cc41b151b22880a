// Checks of the files that a command line names.
#include "io/file_arguments.h"

#include "io/error.h"

namespace bertrand::io {

namespace fs = std::filesystem;

void check_output(const std::string& flag, const fs::path& output, const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  if (output.empty()) fail(Failure::usage, "--{}: expected a file, got none", flag);
  if (fs::is_directory(output, ignored))
    fail(Failure::usage, "--{}: expected a file, got the directory {}", flag, output.string());
  if (const fs::path directory = output.parent_path(); !directory.empty() && !fs::is_directory(directory, ignored))
    fail(Failure::io, "{}: {}: expected an existing directory {}, got none", output.string(), flag, directory.string());
  for (const fs::path& input : inputs)
    if (fs::equivalent(input, output, ignored))
      fail(Failure::usage, "--{}: expected another file than the input, got {}", flag, output.string());
}

double check_files(const std::vector<fs::path>& inputs, const std::vector<fs::path>& outputs) {
  double bytes = 0;
  for (const fs::path& input : inputs) {
    std::error_code error;
    const fs::file_status status = fs::status(input, error);
    if (!fs::exists(status)) fail(Failure::input, "{}: input: expected a file, got nothing there", input.string());
    if (fs::is_directory(status)) fail(Failure::input, "{}: input: expected a file, got a directory", input.string());
    if (fs::is_regular_file(status)) bytes += static_cast<double>(fs::file_size(input, error));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    std::error_code ignored;
    check_output("output", outputs[i], inputs);
    for (std::size_t j = 0; j < i; ++j)
      if (fs::weakly_canonical(outputs[j], ignored) == fs::weakly_canonical(outputs[i], ignored))
        fail(Failure::usage, "--output: expected different files, got {} twice", outputs[i].string());
  }
  return bytes;
}

void check_readable_twice(const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  for (const fs::path& input : inputs)
    if (const auto status = fs::status(input, ignored); fs::exists(status) && fs::is_other(status))
      fail(Failure::input,
           "{}: input: expected a regular file, which is read twice, got a pipe or device; hint: put it "
           "into a file",
           input.string());
}

}  // namespace bertrand::io
