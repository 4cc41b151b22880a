// report: the page of one run or of several beside each other, or of what a model does with texts.
#pragma once
#include <filesystem>
#include <vector>

#include "bert/directory/model_directory.h"

namespace CLI {
class App;
}

namespace bertrand::report {

struct Options {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path texts;      ///< a text in each line, to explain a model with; empty: none is explained
  std::filesystem::path model;      ///< to be explained; empty: that of the run
  bert::TokenizerFlags tokenizer;   ///< of the model
  std::filesystem::path projector;  ///< a directory for TensorBoard's projector; empty: none
  std::filesystem::path output;     ///< empty: report.html or explain.html, in the run if there is one
};

void add_flags(CLI::App& app, Options& options);

/// Prints where the page is. Throws Error(Failure::usage) for a directory that is not there or holds nothing that a run
/// wrote, Error(Failure::io) if the page cannot be written.
void run(const Options& options);

/// The same of a model, with --explain: its page. Throws Error(Failure::input) for a file without a text, and
/// Error(Failure::model) for what is no model.
std::string page_of_model(const Options& options);

}  // namespace bertrand::report
