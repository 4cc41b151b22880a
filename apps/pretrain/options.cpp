#include "apps/pretrain/options.h"

#include <algorithm>

#include "apps/pretrain/recipes.h"
#include "bert/network/config.h"
#include "distributed/processes.h"
#include "io/error.h"
#include "io/file_names.h"

namespace bertrand::pretrain {

namespace {

bool holds_nothing(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(file, ignored) && std::filesystem::is_empty(file, ignored);
}

bool is_tfrecord(const std::filesystem::path& file) {
  return io::plain_extension(file) == ".tfrecord" || io::is_tfrecord(file);
}

InputKind kind_of_file(const std::filesystem::path& file) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) return InputKind::corpus;
  return is_tfrecord(file) ? InputKind::records : InputKind::text;
}

/// All files are text, all are TFRecord, or all are corpora.
void check_one_kind(const std::string& flag, const std::vector<std::filesystem::path>& files) {
  const auto name = [](InputKind kind) {
    return kind == InputKind::text ? "text" : kind == InputKind::records ? "TFRecord" : "a directory";
  };
  const std::filesystem::path* first = nullptr;
  for (const auto& file : files) {
    if (holds_nothing(file)) continue;
    if (!first) first = &file;
    if (const InputKind kind = kind_of_file(file), expected = kind_of_file(*first); kind != expected)
      fail(Failure::usage, "{}: expected files of one kind, got {} ({}) and {} ({})", flag, first->string(),
           name(expected), file.string(), name(kind));
  }
}

void add_text_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("text input");
  table.number({"--masked-lm-prob", "share of tokens to predict", decisive}, options.masking.probability, {1e-6, 1.0});
  table.number({"--max-predictions-per-seq", "most tokens to predict in an example", decisive},
               options.masking.max_predictions, {1, 1 << 20});
  table.number({"--short-seq-prob", "share of documents cut into shorter examples", decisive}, options.short_seq_prob,
               {0.0, 1.0});
  table.toggle({"--whole-word-mask", "mask all pieces of a word or none", decisive}, options.masking.whole_words);
}

}  // namespace

InputKind kind_of(const std::vector<std::filesystem::path>& files) {
  for (const auto& file : files)
    if (const InputKind kind = kind_of_file(file); kind != InputKind::text && !holds_nothing(file)) return kind;
  return InputKind::text;
}

/// A word about flags that are given and do nothing.
void warn_of_unused_flags(const Options& options) {
  const auto warn = [](const char* flag, const char* missing) {
    distributed::warn(fmt::format("{}: of no effect without {}", flag, missing));
  };
  if (options.strict && options.init.empty()) warn("--strict", "--init");
  if (options.settings.eval_every && options.evaluation_inputs.empty()) warn("--eval-every", "--eval-input");
  const auto are_records = [](const auto& files) { return !files.empty() && kind_of(files) == InputKind::records; };
  if (options.on_corrupt == io::OnCorrupt::skip && !are_records(options.inputs) &&
      !are_records(options.evaluation_inputs))
    warn("--on-corrupt skip", "TFRecord files");
}

void add_own_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("run");
  std::vector<std::string> names;
  for (const training::Recipe& recipe : recipes()) names.push_back(recipe.name);
  table.text({.name = "--recipe",
              .help = "published settings as defaults: a name of --list-recipes (default none)",
              .words = names},
             options.recipe, [](const std::string& name) { training::find_recipe(recipes(), name); });
  table.page({"--list-recipes", "print the recipes and what they set, and exit"},
             [] { return training::list_text(recipes()); });

  table.heading("model and data");
  table
      .paths({"--input",
              "what to train on: TFRecord files, corpora of prepare corpus, or text with a sentence a line and a blank "
              "line between documents, or a {\"text\"} a line in .jsonl, .ndjson, .json; files may be compressed by "
              "gzip or Zstandard"},
             options.inputs)
      .required = true;
  table.paths(
      {"--eval-input", "held-out files to evaluate on, of either kind; of text the same examples for every --seed"},
      options.evaluation_inputs);
  table
      .text({"--config",
             fmt::format("shape of a new model: {}, or a config.json", fmt::join(bert::Config::preset_names(), ", ")),
             local, "", "NAME|FILE", bert::Config::preset_names()},
            options.config)
      .excludes = "--init";
  table
      .path({"--init", "model directory or TensorFlow checkpoint to start from instead", local, "", "PATH"},
            options.init)
      .excludes = "--config";
  table.toggle({"--no-next-sentence",
                "learn masked words alone: an example of text is sentences of one document as far as they fit, and a "
                "document may be of one sentence; the pooler and the head of next sentences keep their values",
                decisive},
               options.no_next_sentence);
  table.toggle({"--strict", "with --init: refuse weights of which any is missing, unused or mis-shaped"},
               options.strict);
  table.toggle({"--keep-moments",
                "begin with the optimizer's moments of the run or checkpoint in --init; steps and bias correction "
                "begin anew",
                decisive},
               options.keep_moments);
  table.path({"--vocab-file", "vocab.txt; the one in --init if that has one"}, options.vocabulary);
  table.toggle({"--cased", "with --vocab-file: keep case and accents", decisive}, options.cased);
  static const io::Choices<io::OnCorrupt> corrupt{{"stop", io::OnCorrupt::stop}, {"skip", io::OnCorrupt::skip}};
  table.choice({"--on-corrupt",
                "what to do about a TFRecord whose checksum is wrong; to skip it, all files are read through at every "
                "start, except with --check-inputs none",
                decisive},
               options.on_corrupt, corrupt);
  static const io::Choices<data::InputCheck> checks{
      {"all", data::InputCheck::all}, {"index", data::InputCheck::index}, {"none", data::InputCheck::none}};
  table.choice({"--check-inputs",
                "what to compare of corpora and TFRecord files before the first step: every byte, as --validate-only "
                "does too, their sizes and a sample of 64 KiB of each file, or their sizes alone; what is known of "
                "records is kept beside their file, in .FILE.bertrand.idx"},
               options.check_inputs, checks);
  add_text_flags(table, options);
}

void add_flags(training::FlagTable& table, Options& options) {
  add_own_flags(table, options);
  training::add_flags(table, options.settings);
}

void complete(Options& options) {
  if (!options.recipe.empty()) {
    training::FlagTable table;
    add_flags(table, options);
    training::apply(training::find_recipe(recipes(), options.recipe), table, options.settings.command);
    training::Settings& settings = options.settings;
    if (settings.overfit_batch && !training::is_given("--steps", settings.command)) settings.steps.reset();
  }
  if (options.config.empty() && options.init.empty())
    fail(Failure::usage,
         "--config, --init: expected one of them, got none; hint: --config tiny makes a small new model, "
         "--init PATH starts from one that is there");
  if (options.keep_moments && options.init.empty())
    fail(Failure::usage, "--keep-moments: expected with --init, got --config");
  if (!options.config.empty() && options.vocabulary.empty())
    fail(Failure::usage, "--vocab-file: expected with --config, got none; hint: prepare vocab makes one from text");
  std::error_code absent;  // a directory that does not exist is no other one's equal
  if (std::filesystem::equivalent(options.init, options.settings.output, absent))
    fail(Failure::usage, "--output: expected another directory than --init, got {}", options.settings.output.string());
  check_one_kind("--input", options.inputs);
  check_one_kind("--eval-input", options.evaluation_inputs);
  warn_of_unused_flags(options);
  training::complete(options.settings);
}

std::string recipe_text(const Options& options, std::int64_t longest) {
  if (options.recipe.empty()) return {};
  const training::Recipe& recipe = training::find_recipe(recipes(), options.recipe);
  Options used = options;
  training::FlagTable table;
  add_flags(table, used);
  // Records have the length that they were made with.
  if (kind_of(options.inputs) == InputKind::records) used.settings.max_seq_length = longest;
  return training::plan_text(recipe, table, options.settings.command);
}

}  // namespace bertrand::pretrain
