// predict's flags.
#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "apps/inference_cli/inference_flags.h"
#include "bert/inference/open.h"
#include "training/run/settings.h"

namespace CLI {
class App;
}  // namespace CLI

namespace bertrand::predict {

enum class Form { detect, text, jsonl };

struct Options {
  std::filesystem::path model, input, output;  ///< of the latter two, empty is standard input and output
  bert::TokenizerFlags tokenizer;
  bool strict = false;                  ///< every tensor of the model must fit
  std::optional<inference::Head> head;  ///< none: as config.json says
  inference::Options inference;
  std::optional<int> doc_stride;         ///< none: as the head has it
  std::optional<double> null_threshold;  ///< given: a question may have no answer
  Form form = Form::detect;
  bool report_bad_lines = false;
  bool with_text = false;  ///< answers begin with what was asked
  std::int64_t max_batch_tokens = 4096;
  training::Settings machine;  ///< device, precision, threads and kernels
  std::vector<cli::OwnFlag> own_flags;
};

void add_flags(CLI::App& app, Options& options);

/// What --help says before the flags.
extern const char* const kDescription;

}  // namespace bertrand::predict
