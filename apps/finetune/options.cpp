#include "apps/finetune/options.h"

#include "io/error.h"

namespace bertrand::finetune {
namespace {

void add_ranking_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("for --task msmarco");
  table.path({"--qrels", "relevant passages of the queries in --eval: query id, 0, passage id, 1"}, options.qrels);
  table.number({"--max-query-length", "tokens of a query with [CLS] and [SEP]; more are cut", decisive},
               options.max_query_length, {3, 65536});
}

/// What only --task msmarco needs or may have.
void complete_ranking(const Options& options) {
  if (!options.ranks() && !options.qrels.empty())
    fail(Failure::usage, "--qrels: expected with --task msmarco, got --task {}", options.task);
  if (options.ranks() && options.qrels.empty() != options.evaluation.empty())
    fail(Failure::usage, "--qrels: expected together with --eval, got {} alone",
         options.qrels.empty() ? "--eval" : "--qrels");
}

}  // namespace

tasks::Task Options::make_task() const {
  if (task == "custom")
    return tasks::custom_task(
        {.kind = tasks::parse_kind(kind), .columns = columns, .label_separator = label_separator});
  tasks::Task named = tasks::named_task(task);
  if (!named.language.empty()) named.language = language;
  return named;
}

void add_own_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("model and data");
  table
      .text({"--task", fmt::format("{}, msmarco, or custom", fmt::join(tasks::task_names(), ", ")), decisive},
            options.task)
      .required = true;
  table.path({"--model", "model directory: config.json, model.safetensors, vocab.txt", local, "", "DIR"}, options.model)
      .required = true;
  table.path({"--train", "labelled file to train on: .tsv, .txt, .csv or .jsonl, also .gz"}, options.train);
  table.path({"--eval", "labelled file to evaluate on; the model that does best on it is kept"}, options.evaluation);
  table.path({"--predict", "file to write predictions.tsv for; labels are not needed"}, options.prediction);
  table.path({"--vocab-file", "vocab.txt, for a model directory without one"}, options.vocab_file);
  table.toggle({"--cased", "with --vocab-file: keep case and accents", decisive}, options.cased);

  table.heading("for --task custom");
  table.text({"--text-column", "name of the text's column, or its number from 0", decisive, "", "COLUMN"},
             options.columns.text);
  table.text({"--text-pair-column", "name or number of the second text's column", decisive, "", "COLUMN"},
             options.columns.pair);
  table.text({"--label-column", "name or number of the label's column", decisive, "", "COLUMN"}, options.columns.label);
  table.text({"--id-column", "name or number of the column that predictions.tsv repeats", local, "", "COLUMN"},
             options.columns.id);
  table
      .toggle({"--header", "the first row of a .tsv or .csv names the columns (default); --no-header: it is data",
               decisive},
              options.columns.header)
      .negative = "--no-header";
  table.text({"--kind", "classification, regression or multi-label (default classification)", decisive}, options.kind);
  table.text({"--label-separator", "between the labels of one row, for multi-label (default ,)", decisive, "", "TEXT"},
             options.label_separator);

  table.heading("model and data");
  table.text(
      {"--language", "for --task xnli: the rows of --eval and --predict to read (default zh)", decisive, "", "CODE"},
      options.language);
  add_ranking_flags(table, options);
}

void add_flags(training::FlagTable& table, Options& options) {
  add_own_flags(table, options);
  training::add_flags(table, options.settings);
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
  const bool is_kept = options.ranks() && !options.prediction.empty();  // what was predicted before a stop
  if (options.settings.resume && options.train.empty() && !is_kept)
    fail(Failure::usage, "--resume: expected a file to --train on, got none");
  std::error_code absent;  // a directory that is not there is no other one
  if (std::filesystem::equivalent(options.model, options.settings.output, absent))
    fail(Failure::usage, "--output: expected another directory than --model, got {}", options.settings.output.string());
  if (!options.ranks()) options.make_task();  // refuses an unknown name or kind
  complete_ranking(options);
  training::complete(options.settings);
}

}  // namespace bertrand::finetune
