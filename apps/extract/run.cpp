// extract's flags and its run.
#include "apps/extract/run.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>

#include "apps/cli/flags.h"
#include "bert/directory/model_directory.h"
#include "bert/features/features.h"
#include "bert/objectives/program_files.h"
#include "bert/text/utf8.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_names.h"
#include "io/file_replacer.h"
#include "io/input_files.h"
#include "io/item_progress.h"
#include "io/line_source.h"
#include "io/npy.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/split.h"
#include "io/units.h"
#include "tensor/backends.h"

namespace bertrand::extract {

using inference::Pooling;

namespace {

/// As io::LineSource, which would also read pipes and compressed files: of these no length is known beforehand, and all
/// lines are held.
void refuse_long_lines(std::string_view text, const std::string& file) {
  std::int64_t number = 0;
  for (const std::string_view line : io::lines_of(text))
    if (++number; line.size() > io::LineSource::kLongest)
      fail(Failure::input, "{}:{}: expected a line of at most {} bytes, got more", file, number,
           io::LineSource::kLongest);
}

/// The lines of a text without white space at their ends.
std::vector<std::string_view> trimmed_lines(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\v\f";
  std::vector<std::string_view> lines;
  for (std::string_view line : io::lines_of(text)) {
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
std::unique_ptr<bert::EncoderAlone> load_model(const Options& options, const bert::Config& config, Backend& backend) {
  const bool needs_pooler = options.pooled || options.pooling == Pooling::pooler;
  auto model = std::make_unique<bert::EncoderAlone>(
      config, needs_pooler ? bert::PoolerLayer::present : bert::PoolerLayer::absent);
  const auto require_pooler = [&](const nn::LoadReport& report) {
    const auto is_pooler = [](const std::string& name) { return name.starts_with("bert.pooler."); };
    if (!report.missing.empty() && std::ranges::all_of(report.missing, is_pooler))
      fail(Failure::model, "{}: weights: expected a pooler for {}, got none; hint: {}",
           bert::weights_file(options.model).string(), options.pooled ? "--pooled" : "--pooling pooler",
           options.pooled ? "without --pooled the rows of its tokens are written" : "--pooling mean");
  };
  bert::load_for_inference(options.model, *model, backend,
                           {.dtype = options.precision, .strict = options.strict, .check = require_pooler});
  return model;
}

/// What of the command is asked for, one vector a line or one a token.
features::Request request_of(const Options& options, const bert::Config& config) {
  const bool pools = options.pooling.has_value();
  if (options.output.extension() == ".npy" && !pools)
    fail(Failure::usage,
         "--output: expected --pooling with a .npy file, got none; hint: lines have different numbers of tokens, so "
         "only one vector a line makes a table: --pooling mean");
  if (options.normalize && !pools) fail(Failure::usage, "--normalize: expected with --pooling, got none");
  if (options.pooled && pools) fail(Failure::usage, "--pooled, --pooling: expected one of them, got both");
  const std::string usual = config.num_hidden_layers > 1 && !pools ? "-1,-2" : "-1";
  const features::Request request{
      .layers = features::parse_layers(options.layers.empty() ? usual : options.layers, config.num_hidden_layers),
      .pooled = options.pooled,
      .pooling = options.pooling,
      .normalize = options.normalize};
  if (pools && request.layers.size() != 1)
    fail(Failure::usage, "--layers: expected one with --pooling, got {}", options.layers);
  const Dim last = config.num_hidden_layers - 1;
  if (options.pooling == Pooling::pooler && request.layers[0] != -1 && request.layers[0] != last)
    fail(Failure::usage, "--layers: expected the last, {}, with --pooling pooler, got {}", last, options.layers);
  return request;
}

/// Writes the features of all lines; the file appears when it is complete.
void write(const std::vector<std::string_view>& lines, const text::Tokenizer& tokenizer,
           const features::Extractor& extractor, const features::Request& request, const Options& options) {
  const bert::Config& config = extractor.config;
  const int max_length = options.max_seq_length > 0
                             ? options.max_seq_length
                             : static_cast<int>(std::min<Dim>(128, config.max_position_embeddings));
  io::FileReplacer out(io::Files::system(), options.output);
  const bool is_array = options.output.extension() == ".npy";
  const auto width = static_cast<std::size_t>(config.hidden_size);
  static_assert(std::endian::native == std::endian::little, "values are written as they lie in memory");
  if (is_array) out.write(io::npy_header(std::array{lines.size(), width}));
  io::ItemProgress progress("extracting", std::ssize(lines));
  std::vector<text::Sequence> batch;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    batch.push_back(features::encode_line(lines[i], tokenizer, max_length));
    if (static_cast<int>(batch.size()) < options.batch_size && i + 1 < lines.size()) continue;
    const auto first = static_cast<std::int64_t>(i + 1 - batch.size());
    if (!request.pooling) {
      out.write(features::features_json(extractor, batch, request, first));
    } else {
      const std::vector<float> vectors = features::line_vectors(extractor, batch, request, first);
      if (is_array) out.write({reinterpret_cast<const char*>(vectors.data()), vectors.size() * sizeof(float)});
      else out.write(features::vectors_json(vectors, width, first));
    }
    progress.update(static_cast<std::int64_t>(i) + 1);
    if (io::leave_requested())
      fail(Failure::interrupted, "{}: interrupted after {} of {} lines: nothing was written", options.output.string(),
           i + 1, lines.size());
    batch.clear();
  }
  out.publish();
}

}  // namespace

void add_flags(CLI::App& app, Options& options) {
  using cli::number_flag;
  app.add_option("--model", options.model, "model directory or TensorFlow checkpoint")->type_name("PATH")->required();
  app.add_option("--input", options.input, "text, no JSON: a line each, or two texts as: a ||| b")
      ->type_name("FILE")
      ->required();
  app.add_option(
         "--output", options.output,
         "file to write: a JSON object per line of text, whose number is linex_index as Google's program spells "
         "it; or NAME.npy, with --pooling: NumPy's array of f32, a row per "
         "line")
      ->type_name("FILE")
      ->required();
  app.add_option("--layers", options.layers,
                 "layers to write: from 0, or -1 for the last (default -1,-2, or -1 where there is one)")
      ->type_name("INTS");
  app.add_flag("--pooled", options.pooled, "also write the pooler's output for each line");
  static const io::Choices<std::optional<Pooling>> poolings{
      {"none", std::nullopt}, {"mean", Pooling::mean}, {"cls", Pooling::cls}, {"pooler", Pooling::pooler}};
  cli::choice_flag(app, "--pooling", options.pooling, poolings,
                   "write one vector a line in place of one a token: the mean of all tokens in the one of --layers "
                   "(default the last), that of [CLS], or the pooler's output");
  app.add_flag("--normalize", options.normalize, "with --pooling: vectors of length 1");
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
  io::catch_stop_signals(io::OnStop::leave);
  const bert::Config config = bert::read_config(options.model);
  std::vector<std::filesystem::path> inputs = {options.input};
  if (!options.tokenizer.vocab_file.empty()) inputs.push_back(options.tokenizer.vocab_file);
  io::check_files(inputs, {});
  // Whether the model's own can be read is said by what reads them.
  std::ranges::copy(bert::model_files(options.model), std::back_inserter(inputs));
  io::check_output("output", options.output, inputs);
  training::refuse_file_of_run("output", options.output, objectives::program_files());
  const text::Tokenizer tokenizer = bert::read_tokenizer(options.model, options.tokenizer, config);
  bert::require_room_for_text(config, options.model);
  if (options.max_seq_length > config.max_position_embeddings)
    fail(Failure::usage, "--max-seq-length: expected at most {}, the model's positions, got {}",
         config.max_position_embeddings, options.max_seq_length);
  const features::Request request = request_of(options, config);
  if (io::is_json_lines(options.input) || io::is_table(options.input))
    fail(Failure::usage,
         "--input: expected lines of text, got {} by its name, {}; hint: a file of the texts alone, .txt",
         io::is_table(options.input) ? "a table" : "JSON", options.input.string());
  std::string text = io::read_file(options.input);
  refuse_long_lines(text, options.input.string());
  io::refuse_nul(text, options.input.string());
  std::string valid;
  const text::InvalidBytes invalid = text::drop_invalid_lines(text, valid);
  if (invalid.count > 0) text = std::move(valid);
  const std::vector<std::string_view> lines = trimmed_lines(text);
  const auto backend = open_cpu({.threads = options.threads, .kernels = options.cpu_kernels});
  const std::unique_ptr<bert::EncoderAlone> model = load_model(options, config, *backend);

  write(lines, tokenizer, {config, model->bert, tokenizer.vocabulary(), *backend}, request, options);
  if (invalid.count > 0) io::warn("{}", invalid.message(options.input.string()));
  io::tell("{}: {}", options.output.string(), io::counted(lines.size(), "line"));
}

}  // namespace bertrand::extract
