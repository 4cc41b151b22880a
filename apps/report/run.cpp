#include "apps/report/run.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "bert/directory/model_directory.h"
#include "bert/objectives/program_files.h"
#include "bert/report/report.h"
#include "bert/report/rows.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_names.h"
#include "training/run/run_files.h"

namespace bertrand::report {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFilesOfRun[] = {training::kRunConfig, training::kMetricsLog, training::kResultsJson,
                                       tasks::kEvaluationRows, training::kSamples};

void check_run(const fs::path& run) {
  std::error_code ignored;
  if (!fs::is_directory(run, ignored))
    fail(Failure::usage, "{}: expected the directory of a run, got {}", run.string(),
         fs::exists(run, ignored) ? "a file" : "nothing there");
  const auto is_run = [&](const fs::path& directory) {
    return std::ranges::any_of(kFilesOfRun, [&](const char* file) { return fs::exists(directory / file, ignored); });
  };
  if (is_run(run)) return;
  const bool has_runs = std::ranges::any_of(fs::directory_iterator(run, ignored), is_run);
  fail(Failure::usage, "{}: expected run_config.json, metrics.jsonl or eval_results.json, got none of them{}",
       run.string(),
       has_runs ? fmt::format("; hint: report {} lays the runs in it over each other", (run / "*/").string()) : "");
}

/// What the page is made from.
std::vector<fs::path> inputs_of(const Options& options) {
  std::vector<fs::path> files = {options.texts, options.tokenizer.vocab_file};
  for (const fs::path& run : options.runs)
    for (const char* file : kFilesOfRun) files.push_back(run / file);
  if (options.texts.empty()) return files;
  const std::vector<fs::path> model = bert::model_files(options.model.empty() ? options.runs.front() : options.model);
  files.insert(files.end(), model.begin(), model.end());
  return files;
}

}  // namespace

void add_flags(CLI::App& app, Options& options) {
  app.add_option("RUN", options.runs, "directories of runs, those of --output")->type_name("");
  app.add_option("--explain", options.texts,
                 "a page of what the model does with these texts, one in each line: attention, words, map")
      ->type_name("FILE");
  app.add_option("--model", options.model, "with --explain: the model (default that of RUN)")->type_name("PATH");
  app.add_option("--vocab-file", options.tokenizer.vocab_file, "vocab.txt, for a model directory without one")
      ->type_name("FILE");
  app.add_flag("--cased", options.tokenizer.cased, "with --vocab-file: keep case and accents");
  app.add_option("--projector", options.projector,
                 "with --explain: also write the rows of the map into this directory, for TensorBoard's projector")
      ->type_name("DIR");
  app.add_option("--output", options.output,
                 "the page (default report.html, or explain.html: in RUN if there is one, else here)")
      ->type_name("FILE");
}

void run(const Options& options) {
  const bool explains = !options.texts.empty();
  for (const auto& [flag, is_given] : {std::pair("--model", !options.model.empty()),
                                       {"--vocab-file", !options.tokenizer.vocab_file.empty()},
                                       {"--cased", options.tokenizer.cased},
                                       {"--projector", !options.projector.empty()}})
    if (!explains && is_given) fail(Failure::usage, "{}: expected with --explain, got no --explain", flag);
  io::check_directory("projector", options.projector);
  if (explains && options.runs.size() > 1)
    fail(Failure::usage, "--explain: expected one RUN at most, got {}", options.runs.size());
  if (io::is_table(options.texts) || io::is_json_lines(options.texts))
    fail(Failure::usage, "--explain: {}: expected plain text, a text in each line, got {}; hint: cut out the column",
         options.texts.string(), io::plain_extension(options.texts));
  if (options.runs.empty() && options.model.empty())
    fail(Failure::usage, "RUN: expected the directory of a run{}, got none", explains ? " or --model" : "");
  for (const fs::path& run : options.runs) check_run(run);
  const char* const name = explains ? "explain.html" : "report.html";
  const fs::path file = !options.output.empty()    ? options.output
                        : options.runs.size() == 1 ? options.runs.front() / name
                                                   : fs::path(name);
  training::refuse_file_of_run("output", file, objectives::program_files());
  io::check_output("output", file, inputs_of(options));
  if (explains) {
    io::replace_file(io::Files::system(), file, page_of_model(options));
  } else {
    write_report(io::Files::system(), options.runs, file);
  }
  fmt::print("{}\n", file.string());
}

}  // namespace bertrand::report
