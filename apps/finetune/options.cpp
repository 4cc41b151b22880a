#include "apps/finetune/options.h"

#include "apps/cli/flags.h"
#include "apps/cli/training_flags.h"
#include "io/error.h"

namespace bertrand::finetune {

tasks::Task Options::make_task() const {
  if (task == "custom")
    return tasks::custom_task(
        {.kind = tasks::parse_kind(kind), .columns = columns, .label_separator = label_separator});
  tasks::Task named = tasks::named_task(task);
  if (!named.language.empty()) named.language = language;
  return named;
}

std::vector<std::pair<std::string, std::string>> Options::decisive() const {
  return {{"--task", task},
          {"--cased", fmt::format("{}", cased)},
          {"--text-column", columns.text},
          {"--text-pair-column", columns.pair},
          {"--label-column", columns.label},
          {"--header", fmt::format("{}", columns.header)},
          {"--kind", kind},
          {"--label-separator", label_separator},
          {"--language", language}};
}

void add_flags(CLI::App& app, Options& options) {
  std::string tasks = fmt::format("{}, or custom", fmt::join(tasks::task_names(), ", "));
  app.add_option("--task", options.task, tasks)->type_name("NAME")->required();
  app.add_option("--model", options.model, "model directory: config.json, model.safetensors, vocab.txt")
      ->type_name("DIR")
      ->required();
  app.add_option("--train", options.train, "labelled file to train on: .tsv, .txt, .csv or .jsonl, also .gz")
      ->type_name("FILE");
  app.add_option("--eval", options.evaluation, "labelled file to evaluate on; the model that does best on it is kept")
      ->type_name("FILE");
  app.add_option("--predict", options.prediction, "file to write predictions.tsv for; labels are not needed")
      ->type_name("FILE");
  app.add_option("--vocab-file", options.vocab_file, "vocab.txt, for a model directory without one")->type_name("FILE");
  app.add_flag("--cased", options.cased, "with --vocab-file: keep case and accents");
  app.add_option("--language", options.language, "for --task xnli: the rows of --eval and --predict to read")
      ->type_name("CODE")
      ->capture_default_str();
  cli::set_heading(app, "model and data");

  app.add_option("--text-column", options.columns.text, "name of the text's column, or its number from 0")
      ->type_name("COLUMN");
  app.add_option("--text-pair-column", options.columns.pair, "name or number of the second text's column")
      ->type_name("COLUMN");
  app.add_option("--label-column", options.columns.label, "name or number of the label's column")->type_name("COLUMN");
  app.add_option("--id-column", options.columns.id, "name or number of the column that predictions.tsv repeats")
      ->type_name("COLUMN");
  app.add_flag("--header,!--no-header", options.columns.header,
               "the first row of a .tsv or .csv names the columns (default); --no-header: it is data");
  app.add_option("--kind", options.kind, "classification, regression or multi-label")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--label-separator", options.label_separator, "between the labels of one row, for multi-label")
      ->type_name("TEXT")
      ->capture_default_str();
  cli::set_heading(app, "for --task custom");
  cli::add_common_flags(app, options.settings);
}

void complete(Options& options) {
  if (options.train.empty() && options.evaluation.empty() && options.prediction.empty())
    fail(Failure::usage, "--train, --eval, --predict: expected at least one of them, got none");
  const tasks::CustomColumns& columns = options.columns;
  const Options defaults;
  const bool given = !columns.text.empty() || !columns.pair.empty() || !columns.label.empty() || !columns.id.empty() ||
                     !columns.header || options.kind != defaults.kind ||
                     options.label_separator != defaults.label_separator;
  if (options.task != "custom" && given)
    fail(Failure::usage,
         "--kind, --label-separator, --text-column, --text-pair-column, --label-column, --id-column, --no-header: "
         "expected with --task custom, got --task {}",
         options.task);
  if (!columns.header && columns.text.empty())
    fail(Failure::usage, "--no-header: expected --text-column with a number from 0, got none");
  if (options.settings.plan_only && options.train.empty())
    fail(Failure::usage, "--plan: expected a file to --train on, got none");
  if (options.settings.resume && options.train.empty())
    fail(Failure::usage, "--resume: expected a file to --train on, got none");
  std::error_code absent;  // a directory that is not there is no other one
  if (std::filesystem::equivalent(options.model, options.settings.output, absent))
    fail(Failure::usage, "--output: expected another directory than --model, got {}", options.settings.output.string());
  options.make_task();  // refuses an unknown name or kind
  training::complete(options.settings);
}

}  // namespace bertrand::finetune
