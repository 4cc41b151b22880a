#include "apps/training/file_arguments.h"

#include "tensor/error.h"

namespace bertrand::training {

namespace fs = std::filesystem;

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
    const fs::path& output = outputs[i];
    std::error_code ignored;
    if (fs::is_directory(output, ignored)) {
      fail(Failure::usage, "--output: expected a file, got the directory {}", output.string());
    }
    const fs::path directory = output.parent_path();
    if (!directory.empty() && !fs::is_directory(directory, ignored)) {
      fail(Failure::io, "{}: output: expected an existing directory {}, got none", output.string(), directory.string());
    }
    for (const fs::path& input : inputs) {
      if (fs::equivalent(input, output, ignored)) {
        fail(Failure::usage, "--output: expected another file than the input, got {}", output.string());
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (fs::weakly_canonical(outputs[j], ignored) == fs::weakly_canonical(output, ignored)) {
        fail(Failure::usage, "--output: expected different files, got {} twice", output.string());
      }
    }
  }
  return bytes;
}

void check_run_inputs(const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  for (const fs::path& input : inputs)
    if (const auto status = fs::status(input, ignored); fs::exists(status) && fs::is_other(status))
      fail(Failure::input,
           "{}: input: expected a regular file, which is read twice, got a pipe or device; hint: put it "
           "into a file",
           input.string());
}

void check_profile(const fs::path& profile, const std::vector<fs::path>& inputs) {
  if (profile.empty()) return;
  std::error_code ignored;
  if (fs::is_directory(profile, ignored))
    fail(Failure::usage, "--profile: expected a file to write, got the directory {}", profile.string());
  if (const fs::path directory = profile.parent_path(); !directory.empty() && !fs::is_directory(directory, ignored))
    fail(Failure::io, "{}: profile: expected an existing directory {}, got none", profile.string(), directory.string());
  for (const fs::path& input : inputs)
    if (fs::equivalent(input, profile, ignored))
      fail(Failure::usage, "--profile: expected another file than the input, got {}", profile.string());
}

}  // namespace bertrand::training
