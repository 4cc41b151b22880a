// The numbers of all runs, put into the page.
#include "bert/report/report.h"

#include <algorithm>
#include <ctime>

#include "bert/report/page.h"
#include "io/say.h"
#include "io/version.h"

namespace bertrand::report {
namespace {

/// 2026-11-23 04:45 UTC
std::string time_text() {
  const std::time_t now = std::time(nullptr);
  char text[64];
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc)};
}

/// JSON that may stand in a script element: no text of it can end the element or begin a comment.
std::string script_text(const io::Json& json) {
  std::string text;
  for (const char c : io::json_text(json)) {
    if (c == '<') text += "\\u003c";
    else text += c;
  }
  return text;
}

std::string page_with(const std::string& numbers) {
  std::string page(page_template());
  const std::size_t at = page.find(kNumbers);
  check(at != std::string::npos, "page.html: expected {}, got none", kNumbers);
  return page.replace(at, kNumbers.size(), numbers);
}

/// The last row stays: the page says of an empty list that no row is wrong.
Extent halved(const Extent& extent) {
  return {.points = extent.points / 2,
          .rows = std::max(extent.rows / 2, std::size_t{1}),
          .classes = std::max(extent.classes / 2, std::size_t{2})};
}

}  // namespace

std::string page_of(io::Json numbers) {
  numbers["written"] = time_text();
  numbers["version"] = version();
  return page_with(script_text(numbers));
}

std::string page_of_runs(const std::vector<std::filesystem::path>& directories) {
  for (Extent extent;; extent = halved(extent)) {
    io::Json runs = io::Json::array();
    for (const auto& directory : directories) runs.push_back(numbers_of_run(directory, extent));
    const std::string page = page_of({{"runs", std::move(runs)}});
    if (page.size() <= kMostBytes || extent.points < 20) return page;
  }
}

void write_report(io::Files& files, const std::vector<std::filesystem::path>& directories,
                  const std::filesystem::path& output) {
  io::replace_file(files, output, page_of_runs(directories));
}

void write_report_of_run(io::Files& files, const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "report.html";
  write_report(files, {directory}, file);
  io::say(fmt::format("report: {}\n", file.string()));
}

}  // namespace bertrand::report
