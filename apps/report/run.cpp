#include "apps/report/run.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "bert/report/report.h"
#include "io/error.h"

namespace bertrand::report {
namespace {

namespace fs = std::filesystem;

void check_run(const fs::path& run) {
  std::error_code ignored;
  if (!fs::is_directory(run, ignored))
    fail(Failure::usage, "{}: expected the directory of a run, got {}", run.string(),
         fs::exists(run, ignored) ? "a file" : "nothing there");
  constexpr const char* kFiles[] = {"run_config.json", "metrics.jsonl", "eval_results.json", "eval_rows.jsonl"};
  if (std::ranges::none_of(kFiles, [&](const char* file) { return fs::exists(run / file, ignored); }))
    fail(Failure::usage, "{}: expected run_config.json, metrics.jsonl or eval_results.json, got none of them",
         run.string());
}

}  // namespace

void add_flags(CLI::App& app, Options& options) {
  app.add_option("RUN", options.runs, "directories of runs, those of --output")->type_name("")->required();
  app.add_option("--output", options.output, "the page (default report.html: in RUN if there is one, else here)")
      ->type_name("FILE");
}

void run(const Options& options) {
  for (const fs::path& run : options.runs) check_run(run);
  const fs::path file = !options.output.empty()    ? options.output
                        : options.runs.size() == 1 ? options.runs.front() / "report.html"
                                                   : fs::path("report.html");
  write_report(io::Files::system(), options.runs, file);
  fmt::print("{}\n", file.string());
}

}  // namespace bertrand::report
