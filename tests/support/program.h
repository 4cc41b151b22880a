// Runs the project's programs as a user does, and looks at what they leave.
#pragma once
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/paths.h"

namespace support {

/// "" if there is no such file, as while one waits for it.
inline std::string read_if_there(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Throws if the file cannot be read: two that are missing would be equal.
inline std::ifstream opened(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error(file.string() + ": expected a file that can be read, got none");
  return in;
}

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream in = opened(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

inline std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& file) {
  std::vector<nlohmann::json> lines;
  std::ifstream in = opened(file);
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

/// metrics.jsonl of a run without what depends on the clock, and on which process or replica ran.
inline std::vector<nlohmann::json> steady_metrics(const std::filesystem::path& run) {
  auto lines = read_json_lines(run / "metrics.jsonl");
  for (auto& line : lines)
    for (const char* key : {"examples_per_second", "tokens_per_second", "memory_bytes", "seconds"}) line.erase(key);
  return lines;
}

/// A new directory that goes away with this.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "bertrand-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// `defaults`, pairs of a flag and its value, without those that `more` gives again, then `more`: a flag comes once.
inline std::vector<std::string> with_defaults(const std::vector<std::string>& defaults,
                                              const std::vector<std::string>& more) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i + 1 < defaults.size(); i += 2)
    if (std::find(more.begin(), more.end(), defaults[i]) == more.end())
      all.insert(all.end(), {defaults[i], defaults[i + 1]});
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

struct Outcome {
  int code = 0;
  std::string out, error;
  std::size_t peak_bytes = 0;  ///< of the process's memory in use
};

/// Runs one of the programs that were built with the tests.
inline Outcome run_program(const std::string& name, const std::vector<std::string>& arguments) {
  const TemporaryDirectory streams;
  const auto quoted = [](const std::string& text) { return " '" + text + "'"; };
  std::string command = quoted(bertrand::paths::binary + "/" + name);
  for (const std::string& argument : arguments) command += quoted(argument);
  command += " >" + quoted((streams / "out").string()) + " 2>" + quoted((streams / "error").string());
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .out = read_text(streams / "out"),
          .error = read_text(streams / "error"),
          .peak_bytes = static_cast<std::size_t>(usage.ru_maxrss) * 1024};
}

}  // namespace support
