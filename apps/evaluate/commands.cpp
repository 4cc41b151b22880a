#include "apps/evaluate/commands.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "apps/cli/flags.h"
#include "bert/tasks/score_files.h"
#include "bert/tasks/score_predictions.h"
#include "io/error.h"
#include "io/python_json.h"
#include "io/say.h"

namespace bertrand::evaluate {
namespace {

namespace fs = std::filesystem;

struct Options {
  fs::path data, predictions, null_odds, qrels, run, tokens;
  double threshold = 1;
  std::string task = "custom";
  tasks::TokenTask token_task = tasks::TokenTask::ner;
  tasks::CustomColumns columns = {};
  bool json = false, table = false;
};

/// A number of things is whole, as the official scripts write it.
std::string json_number(std::string_view name, double value) {
  const bool is_count = name.ends_with("support") || name.ends_with("total") || name == "queries" || name == "words" ||
                        name == "rows" || name == "illegal_tags";
  return is_count ? fmt::format("{:.0f}", value) : io::python_json(value);
}

/// `key = value` lines in the order of the keys, with 17 digits, or one JSON object, or the table.
void print(const tasks::FileScores& scores, const Options& options) {
  for (const std::string& warning : scores.warnings) io::warn("{}", warning);
  if (options.table) return fmt::print("{}", scores.table);
  std::string text;
  for (const auto& [name, value] : scores.figures)
    text += options.json
                ? fmt::format("{}{}: {}", text.empty() ? "" : ", ", io::python_json(name), json_number(name, value))
                : fmt::format("{} = {:.17g}\n", io::one_line(name), value);
  fmt::print("{}", options.json ? "{" + text + "}\n" : text);
}

tasks::FileScores named(tasks::AnswerScores scores) {
  tasks::FileScores named{.figures = std::move(scores.figures), .warnings = {}};
  if (!scores.missing.empty())
    named.warnings.push_back(
        fmt::format("questions without a prediction: {}, the first {}", scores.missing.size(), scores.missing.front()));
  return named;
}

void score_squad(const Options& options) {
  print(named(tasks::score_squad(tasks::read_squad(options.data), tasks::read_answers(options.predictions),
                                 {.data = options.data.string()})),
        options);
}

void score_squad2(const Options& options) {
  std::optional<tasks::NullOdds> odds;
  if (!options.null_odds.empty()) odds = tasks::read_null_odds(options.null_odds);
  print(named(tasks::score_squad2(tasks::read_squad(options.data), tasks::read_answers(options.predictions), odds,
                                  options.threshold,
                                  {.data = options.data.string(), .null_odds = options.null_odds.string()})),
        options);
}

void add_answer_flags(CLI::App& command, Options& options) {
  command.add_option("--data", options.data, "questions and answers in SQuAD's JSON, or a question a line")
      ->type_name("FILE")
      ->required();
  command.add_option("--predictions", options.predictions, "a JSON object: an answer for each question's id")
      ->type_name("FILE")
      ->required();
}

void score_texts(const Options& options, tasks::Kind kind) {
  const auto& [text, pair, choices, label, id, header] = options.columns;
  const bool is_custom = options.task == "custom",
             has_columns = !(text + pair + choices + label + id).empty() || !header;
  if (!is_custom && has_columns)
    fail(Failure::usage, "--task: expected custom with flags for columns, got {}", options.task);
  const tasks::Task task =
      is_custom ? tasks::custom_task({.kind = kind, .columns = options.columns}) : tasks::named_task(options.task);
  if (task.kind != kind)
    fail(Failure::usage, "--task: expected one of {}, got {}, one of {}", io::name_in(tasks::kinds(), kind),
         options.task, io::name_in(tasks::kinds(), task.kind));
  print(tasks::score_predictions(task, options.data.string(), options.predictions.string()), options);
}

void add_text_flags(CLI::App& command, Options& options) {
  command.add_option("--data", options.data, "a table with true labels, as --eval of finetune takes it")
      ->type_name("FILE")
      ->required();
  command.add_option("--predictions", options.predictions, "predictions.tsv of the same rows, as finetune writes it")
      ->type_name("FILE")
      ->required();
  command.add_option("--task", options.task, "of finetune, whose columns and figures are meant (default custom)")
      ->type_name("NAME");
  // Defaults and forms are those of finetune.
  for (const auto& [name, column] : {std::pair("--text-column", &options.columns.text),
                                     {"--text-pair-column", &options.columns.pair},
                                     {"--label-column", &options.columns.label},
                                     {"--id-column", &options.columns.id}})
    command.add_option(name, *column, fmt::format("of --data, as {} of finetune", name))->type_name("COLUMN");
  command.add_flag("--header,!--no-header", options.columns.header,
                   "the first row of --data names the columns (default)");
}

void add_command(CLI::App& app, const std::string& name, const std::string& description,
                 const std::function<void(CLI::App&, Options&)>& add_flags, void (*run)(const Options&),
                 std::function<void()>& chosen) {
  CLI::App* const command = app.add_subcommand(name, description);
  const auto options = std::make_shared<Options>();
  add_flags(*command, *options);
  command->add_flag("--json", options->json, "print one JSON object");
  command->final_callback([&chosen, run, options] { chosen = [run, options] { run(*options); }; });
}

}  // namespace

void add_commands(CLI::App& app, std::function<void()>& chosen) {
  app.require_subcommand(1);
  add_command(app, "squad", "exact match and F1 of answers, as evaluate-v1.1.py", add_answer_flags, score_squad,
              chosen);
  add_command(
      app, "squad2", "exact match and F1 of answers some of which are none, as evaluate-v2.0.py",
      [](CLI::App& command, Options& options) {
        add_answer_flags(command, options);
        command.add_option("--null-odds", options.null_odds, "a JSON object: a number for each question's id")
            ->type_name("FILE");
        cli::number_flag(command, "--null-threshold", options.threshold, {-1e30, 1e30},
                         "odds above which an answer counts as none")
            ->needs("--null-odds");
      },
      score_squad2, chosen);
  add_command(
      app, "ranking", "figures of ranked passages: MAP, MRR, MRR@10, NDCG, R-precision",
      [](CLI::App& command, Options& options) {
        command.add_option("--qrels", options.qrels, "lines of query id, 0, passage id and relevance")
            ->type_name("FILE")
            ->required();
        command.add_option("--run", options.run, "lines of query id, passage id and rank from 1")
            ->type_name("FILE")
            ->required();
      },
      [](const Options& options) { print(tasks::score_ranking_files(options.qrels, options.run), options); }, chosen);
  add_command(
      app, "tokens", "precision, recall and F1 of entities, as seqeval, or figures of other labels of words",
      [](CLI::App& command, Options& options) {
        command
            .add_option("FILE", options.tokens,
                        "lines of word, true tag and predicted tag, a blank line ends a sentence; or predictions.tsv "
                        "of finetune on words with labels")
            ->type_name("")
            ->required();
        cli::choice_flag(command, "--task", options.token_task, tasks::token_tasks(),
                         "of finetune, whose figures are meant: ner those of entities");
        command.add_flag("--table", options.table,
                         "print seqeval's classification_report, with four decimals; of other tasks than ner the "
                         "figures of each label, as eval_report.tsv has them");
      },
      [](const Options& options) { print(tasks::score_tokens_file(options.tokens, options.token_task), options); },
      chosen);
  add_command(
      app, "classes", "accuracy and F1 of classes of texts, as finetune's evaluation",
      [](CLI::App& command, Options& options) {
        add_text_flags(command, options);
        command.add_option("--choice-columns", options.columns.choices, "of --data, as --choice-columns of finetune")
            ->type_name("COLUMNS");
        command.add_flag("--table", options.table, "print the figures of each class, as eval_report.tsv has them");
      },
      [](const Options& options) { score_texts(options, tasks::Kind::classification); }, chosen);
  add_command(
      app, "scores", "correlations of numbers for texts, as finetune's evaluation", add_text_flags,
      [](const Options& options) { score_texts(options, tasks::Kind::regression); }, chosen);
  for (const char* name : {"tokens", "classes"}) app.get_subcommand(name)->get_option("--table")->excludes("--json");
}

}  // namespace bertrand::evaluate
