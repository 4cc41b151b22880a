// report: the page of one run or of several beside each other.
#pragma once
#include <filesystem>
#include <vector>

namespace CLI {
class App;
}

namespace bertrand::report {

struct Options {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path output;  ///< empty: report.html, in the run if there is one
};

void add_flags(CLI::App& app, Options& options);

/// Prints where the page is. Throws Error(Failure::usage) for a directory that is not there or holds nothing that a run
/// wrote, Error(Failure::io) if the page cannot be written.
void run(const Options& options);

}  // namespace bertrand::report
