// extract's flags and its run.
#include "apps/extract/run.h"

#include <CLI/CLI.hpp>

#include "apps/cli/flags.h"
#include "apps/extract/features.h"
#include "bert/directory/model_directory.h"
#include "bert/text/utf8.h"
#include "io/file_arguments.h"
#include "io/file_replacer.h"
#include "io/input_files.h"
#include "tensor/backends.h"

namespace bertrand::extract {
namespace {

/// The lines of a text without white space at their ends; a last line may lack its LF.
std::vector<std::string_view> lines_of(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
    lines.push_back(line.substr(0, line.find_last_not_of(kSpace) + 1));
  }
  return lines;
}

const io::Choices<DType>& precisions() {
  static const io::Choices<DType> choices = {
      {"f32", DType::f32}, {"bf16", DType::bf16}, {"f16", DType::f16}, {"f64", DType::f64}};
  return choices;
}

/// Parameters that are there without being asked for: the pooler and heads.
std::unique_ptr<Model> load_model(const Options& options, const bert::Config& config, Backend& backend) {
  auto model =
      std::make_unique<Model>(config, options.pooled ? bert::Pooling::with_pooler : bert::Pooling::without_pooler);
  nn::ParameterSet parameters(*model, backend, {.dtype = options.precision, .initialize = false, .gradients = false});
  const nn::LoadReport report = bert::load_weights(options.model, parameters);
  if (options.strict) bert::require_exact(report, options.model);
  nn::require(report, options.model, [](const std::string&) { return false; });
  return model;
}

}  // namespace

void add_flags(CLI::App& app, Options& options) {
  using cli::number_flag;
  app.add_option("--model", options.model, "model directory or TensorFlow checkpoint")->type_name("PATH")->required();
  app.add_option("--input", options.input, "text: a line each, or two texts as: a ||| b")
      ->type_name("FILE")
      ->required();
  app.add_option("--output", options.output, "file to write, a JSON object per line of text")
      ->type_name("FILE")
      ->required();
  app.add_option("--layers", options.layers,
                 "layers to write: from 0, or -1 for the last (default -1,-2, or -1 where there is one)")
      ->type_name("INTS");
  app.add_flag("--pooled", options.pooled, "also write the pooler's output for each line");
  number_flag(app, "--max-seq-length", options.max_seq_length, {5, 1 << 20}, "tokens of a line; longer ones are cut",
              "128, or the model's positions if these are fewer");
  number_flag(app, "--batch-size", options.batch_size, {1, 1 << 16},
              "lines computed at once; does not change the result");
  app.add_option("--vocab-file", options.tokenizer.vocab_file, "vocab.txt, for a model directory without one")
      ->type_name("FILE");
  app.add_flag("--cased", options.tokenizer.cased, "with --vocab-file: keep case and accents");
  cli::choice_flag(app, "--precision", options.precision, precisions(), "type of weights and activations");
  app.add_flag("--strict", options.strict, "refuse weights of which any is missing, unused or mis-shaped");
  number_flag(app, "--threads", options.threads, {1, 4096}, "cores used; does not change the result",
              "every core this process may use");
  cli::kernels_flag(app, options.cpu_kernels, "the result");
}

void run(const Options& options) {
  const bert::Config config = bert::read_config(options.model);
  std::vector<std::filesystem::path> inputs = {options.input};
  if (!options.tokenizer.vocab_file.empty()) inputs.push_back(options.tokenizer.vocab_file);
  std::ranges::copy(bert::model_files(options.model), std::back_inserter(inputs));
  io::check_files(inputs, {options.output});
  const text::Tokenizer tokenizer = bert::read_tokenizer(options.model, options.tokenizer, config);
  if (options.max_seq_length > config.max_position_embeddings)
    fail(Failure::usage, "--max-seq-length: expected at most {}, the model's positions, got {}",
         config.max_position_embeddings, options.max_seq_length);
  const int max_length = options.max_seq_length > 0
                             ? options.max_seq_length
                             : static_cast<int>(std::min<Dim>(128, config.max_position_embeddings));
  const std::string layers = !options.layers.empty() ? options.layers : config.num_hidden_layers > 1 ? "-1,-2" : "-1";
  const Request request{.layers = parse_layers(layers, config.num_hidden_layers), .pooled = options.pooled};
  std::string text = io::read_file(options.input);
  io::refuse_nul(text, options.input.string());
  std::string valid;
  const text::InvalidBytes invalid = text::drop_invalid_lines(text, valid);
  if (invalid.count > 0) text = std::move(valid);
  const std::vector<std::string_view> lines = lines_of(text);
  const auto backend = open_cpu({.threads = options.threads, .kernels = options.cpu_kernels});
  const std::unique_ptr<Model> model = load_model(options, config, *backend);

  io::FileReplacer out(io::Files::system(), options.output);
  std::vector<text::Sequence> batch;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    batch.push_back(encode_line(lines[i], tokenizer, max_length));
    if (static_cast<int>(batch.size()) < options.batch_size && i + 1 < lines.size()) continue;
    const auto first = static_cast<std::int64_t>(i + 1 - batch.size());
    out.write(features_json({*model, tokenizer.vocabulary(), *backend}, batch, request, first));
    batch.clear();
  }
  out.publish();
  if (invalid.count > 0) fmt::print(stderr, "warning: {}\n", invalid.message(options.input.string()));
  fmt::print(stderr, "{}: {} lines\n", options.output.string(), lines.size());
}

}  // namespace bertrand::extract
