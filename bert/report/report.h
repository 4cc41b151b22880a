// report.html: what one run was and came to, or several beside each other, as one page that needs nothing else.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "io/files.h"
#include "io/json.h"

namespace bertrand::report {

/// How much of the runs a page shows: halved until the page is small enough.
struct Extent {
  std::size_t points = 2000;  ///< of a curve
  std::size_t rows = 40;      ///< of the evaluation, in each list
  std::size_t classes = 60;   ///< with a confusion matrix
};

/// No page is larger, unless there are more than some hundred runs.
inline constexpr std::size_t kMostBytes = 2'000'000;

/// What the files of a run directory say, as the page takes it. What is missing or damaged is left out and named in
/// "notes". Throws Error(Failure::io) if a file that is there cannot be read.
io::Json numbers_of_run(const std::filesystem::path& directory, const Extent& extent);

/// The page with these numbers, "runs" (a list, as numbers_of_run() has them) and "explain" (bert/explain).
std::string page_of(io::Json numbers);

/// The page of these runs. Its numbers are JSON in the element with the id "numbers".
std::string page_of_runs(const std::vector<std::filesystem::path>& directories);

/// Writes the page into a file. Throws Error(Failure::io).
void write_report(io::Files& files, const std::vector<std::filesystem::path>& directories,
                  const std::filesystem::path& output);

/// The page of one run, report.html in its directory. Prints where it is.
void write_report_of_run(io::Files& files, const std::filesystem::path& directory);

}  // namespace bertrand::report
