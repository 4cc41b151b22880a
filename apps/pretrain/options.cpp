#include "apps/pretrain/options.h"

#include <algorithm>

#include "apps/cli/flags.h"
#include "apps/cli/training_flags.h"

namespace bertrand::pretrain {

namespace {

bool holds_nothing(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) && std::filesystem::is_empty(file, ignored);
}

bool is_tfrecord(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return name.ends_with(".tfrecord") || name.ends_with(".tfrecord.gz") || io::is_tfrecord(file);
}

/// All files are text or all are TFRecord.
void check_one_kind(const std::string& flag, const std::vector<std::filesystem::path>& files) {
  const auto kind = [](bool records) { return records ? "TFRecord" : "text"; };
  const std::filesystem::path* first = nullptr;
  for (const auto& file : files) {
    if (holds_nothing(file)) continue;
    if (!first) first = &file;
    if (const bool records = is_tfrecord(file); records != is_tfrecord(*first))
      fail(Failure::usage, "{}: expected files of one kind, got {} ({}) and {} ({})", flag, first->string(),
           kind(!records), file.string(), kind(records));
  }
}

}  // namespace

bool are_tfrecords(const std::vector<std::filesystem::path>& files) { return std::ranges::any_of(files, is_tfrecord); }

void add_flags(CLI::App& app, Options& options) {
  app.add_option(
         "--input", options.inputs,
         "files to train on: TFRecord, also compressed by gzip, or text with a sentence a line and a blank line "
         "between documents")
      ->required()
      ->type_name("FILE");
  app.add_option("--eval-input", options.evaluation_inputs, "held-out files to evaluate on, of either kind")
      ->type_name("FILE");
  auto* config = app.add_option("--config", options.config,
                                "shape of a new model: tiny, mini, small, medium, base, large, or a config.json")
                     ->type_name("NAME|FILE");
  auto* init = app.add_option("--init", options.init, "model directory to start from instead")->type_name("DIR");
  config->excludes(init);
  app.add_option("--vocab-file", options.vocabulary, "vocab.txt; the one in --init where that has one")
      ->type_name("FILE");
  app.add_flag("--cased", options.cased, "with --vocab-file: keep case and accents");

  const io::Choices<io::OnCorrupt> corrupt{{"stop", io::OnCorrupt::stop}, {"skip", io::OnCorrupt::skip}};
  cli::choice_flag(app, "--on-corrupt", options.on_corrupt, corrupt,
                   "what to do about a TFRecord whose checksum is wrong");
  cli::set_heading(app, "model and data");

  cli::number_flag(app, "--masked-lm-prob", options.masking.probability, {1e-6, 1.0}, "share of tokens to predict");
  cli::number_flag(app, "--max-predictions-per-seq", options.masking.max_predictions, {1, 1 << 20},
                   "most tokens to predict in an example");
  cli::number_flag(app, "--short-seq-prob", options.short_seq_prob, {0.0, 1.0},
                   "share of documents cut into shorter examples");
  app.add_flag("--whole-word-mask", options.masking.whole_words, "mask all pieces of a word or none");
  cli::set_heading(app, "text input");
  cli::add_common_flags(app, options.settings);
}

void complete(Options& options) {
  if (options.config.empty() && options.init.empty())
    fail(Failure::usage, "--config, --init: expected one of them, got none");
  if (!options.config.empty() && options.vocabulary.empty())
    fail(Failure::usage, "--vocab-file: expected with --config, got none; hint: prepare vocab makes one from text");
  std::error_code absent;  // a directory that does not exist is no other one's equal
  if (std::filesystem::equivalent(options.init, options.settings.output, absent))
    fail(Failure::usage, "--output: expected another directory than --init, got {}", options.settings.output.string());
  check_one_kind("--input", options.inputs);
  check_one_kind("--eval-input", options.evaluation_inputs);
  training::complete(options.settings);
}

std::vector<std::pair<std::string, std::string>> Options::decisive() const {
  return {{"--cased", fmt::format("{}", cased)},
          {"--on-corrupt", on_corrupt == io::OnCorrupt::skip ? "skip" : "stop"},
          {"--masked-lm-prob", fmt::format("{}", masking.probability)},
          {"--max-predictions-per-seq", fmt::format("{}", masking.max_predictions)},
          {"--short-seq-prob", fmt::format("{}", short_seq_prob)},
          {"--whole-word-mask", fmt::format("{}", masking.whole_words)}};
}

}  // namespace bertrand::pretrain
