// Checks of the files that a command line names.
#include "io/file_arguments.h"

#include <set>
#include <string_view>

#include "io/error.h"
#include "io/file_names.h"
#include "io/input_files.h"

namespace bertrand::io {
namespace {

namespace fs = std::filesystem;

/// What is there; a pipe or a device is a file too.
std::string_view kind_at(const fs::path& path) {
  std::error_code ignored;  // of a link that leads to itself
  if (fs::is_directory(path, ignored)) return "directory";
  return fs::exists(path, ignored) ? "file" : "link to nothing";
}

}  // namespace

void check_output(const std::string& flag, const fs::path& output, const std::vector<fs::path>& inputs) {
  std::error_code ignored;
  if (output == "-") fail(Failure::usage, "--{}: expected a file, got -; hint: ./- is a file of that name", flag);
  if (fs::is_directory(output, ignored))
    fail(Failure::usage, "--{}: expected a file, got the directory {}", flag, output.string());
  if (is_compressed_name(output))
    fail(Failure::usage, "--{}: expected a name of a file that is not compressed, got {}; hint: compress it afterwards",
         flag, output.string());
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
    if (!fs::status_known(status)) refuse_open(input, error.value());
    if (!fs::exists(status))
      fail(Failure::input, "{}: input: expected a file, got nothing there{}", input.string(), hint_of_absent(input));
    if (fs::is_directory(status)) fail(Failure::input, "{}: input: expected a file, got a directory", input.string());
    if (fs::is_regular_file(status)) bytes += static_cast<double>(fs::file_size(input, error));
  }
  std::set<fs::path> places;  // absolute: what is not there yet has no canonical name of its own
  for (const fs::path& output : outputs) {
    std::error_code ignored;
    check_output("output", output, inputs);
    if (!places.insert(fs::weakly_canonical(fs::absolute(output, ignored), ignored)).second)
      fail(Failure::usage, "--output: expected different files, got {} twice", output.string());
  }
  return bytes;
}

void check_directory(const std::string& flag, const fs::path& directory) {
  const std::string_view kind = kind_at(directory);
  if (fs::exists(fs::symlink_status(directory)) && kind != "directory")
    fail(Failure::usage, "--{}: expected a directory, got the {} {}", flag, kind, directory.string());
}

void check_new_directory(const std::string& flag, const fs::path& directory) {
  if (fs::exists(fs::symlink_status(directory)))
    fail(Failure::usage, "--{}: {}: expected a name that is free, got a {}; hint: remove it or name another", flag,
         directory.string(), kind_at(directory));
  const fs::path parent = parent_of(directory);
  if (!fs::is_directory(parent))
    fail(Failure::usage, "--{}: {}: expected a directory that exists, got none", flag, parent.string());
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
