#include "apps/finetune/options.h"

#include <algorithm>
#include <sstream>

#include "io/error.h"
#include "io/nearest_name.h"

namespace bertrand::finetune {
namespace {

void add_ranking_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("for --task msmarco");
  table.path({"--qrels", "relevant passages of the queries in --eval: query id, 0, passage id, 1"}, options.qrels);
  table.number({"--max-query-length",
                "tokens of a query with [CLS] and [SEP], of squad and squad2 without them; more are cut", decisive},
               options.max_query_length, {3, 65536});
}

void add_span_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("for --task squad and squad2");
  table.number({"--n-best-size", "answers of a question that are compared and written", decisive}, options.n_best_size,
               {1, 65536});
  table.number({"--max-answer-length", "word pieces of an answer at most", decisive}, options.max_answer_length,
               {1, 65536});
  table.number(
      {"--null-score-diff-threshold",
       "for squad2: a question has no answer if that scores better than the best one by more than this", decisive},
      options.null_score_diff_threshold, {-1e30, 1e30});
}

/// What only --task msmarco needs.
void complete_ranking(const Options& options) {
  if (options.qrels.empty() != options.evaluation.empty())
    fail(Failure::usage, "--qrels: expected together with --eval, got {} alone",
         options.qrels.empty() ? "--eval" : "--qrels");
}

void add_word_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("to label words");
  table.choice(
      {"--layout", "words: a word a line, a blank line ends a sentence; rows: a sentence a line, words TAB labels",
       decisive},
      options.layout, {{"words", tasks::TokenLayout::words}, {"rows", tasks::TokenLayout::rows}});
  table.toggle({"--label-all-pieces", "all pieces of a word learn its label, not the first one alone", decisive},
               options.label_all_pieces);
  table.number({"--doc-stride",
                "word pieces that the windows of a long sentence share; of squad and squad2 those from the beginning "
                "of a window "
                "to that of the next (default 128)",
                decisive, "a quarter of a window"},
               options.doc_stride, io::Range<int>{0, 65536}, "a quarter of a window");
}

std::vector<std::string> known_tasks() {
  std::vector<std::string> names = tasks::task_names();
  for (const std::string& name : tasks::token_task_names()) names.push_back(name);
  names.insert(names.end(), {"squad", "squad2", "msmarco", "custom"});
  return names;
}

void refuse_unknown_task(const std::string& name) {
  const std::vector<std::string> names = known_tasks();
  if (std::ranges::find(names, name) == names.end())
    fail(Failure::usage, "--task: expected one of {}, got {}{}", fmt::join(names, ", "), name,
         io::did_you_mean(name, names));
}

/// The flags that some tasks alone understand, and these tasks.
std::vector<std::pair<std::string, std::vector<std::string>>> flags_of_tasks() {
  const std::vector<std::string> custom = {"custom"}, ranking = {"msmarco"}, words = tasks::token_task_names(),
                                 spans = {"squad", "squad2"};
  const auto with = [](std::vector<std::string> names, const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
    return names;
  };
  const std::vector<std::string> columns = with(words, custom);
  return {{"--text-column", columns},
          {"--label-column", columns},
          {"--text-pair-column", custom},
          {"--id-column", custom},
          {"--header", custom},
          {"--kind", custom},
          {"--label-separator", custom},
          {"--layout", words},
          {"--label-all-pieces", words},
          {"--doc-stride", with(words, spans)},
          {"--qrels", ranking},
          {"--language", {"xnli"}},
          {"--max-query-length", with(spans, ranking)},
          {"--n-best-size", spans},
          {"--max-answer-length", spans},
          {"--null-score-diff-threshold", {"squad2"}},
          {"--class-weights", with(tasks::task_names(), custom)},
          {"--label-smoothing", with(tasks::task_names(), custom)}};
}

/// A flag of another task that has not its default.
void refuse_flags_of_other_tasks(const Options& options) {
  Options given = options, defaults;
  training::FlagTable own, absent;
  add_own_flags(own, given);
  add_own_flags(absent, defaults);
  for (const auto& [name, understanding] : flags_of_tasks()) {
    if (std::ranges::find(understanding, options.task) != understanding.end()) continue;
    const training::Flag& flag = own.flag(name);
    if (flag.target.value() != absent.flag(name).target.value())
      fail(Failure::usage, "{}: expected with --task {}, got --task {}", flag.negative.empty() ? name : flag.negative,
           fmt::join(understanding, ", "), options.task);
  }
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

std::optional<tasks::TokenOptions> Options::token_options() const {
  const auto token_task = tasks::find_token_task(task);
  if (!token_task) return std::nullopt;
  tasks::TokenOptions found{.task = *token_task, .label_all_pieces = label_all_pieces};
  const io::Range<std::size_t> range{0, 1023};
  found.columns.layout = layout;
  if (!columns.text.empty()) found.columns.word = io::parse_number("--text-column", columns.text, range);
  if (!columns.label.empty()) found.columns.label = io::parse_number("--label-column", columns.label, range);
  found.windows.overlap = doc_stride;
  return found;
}

std::vector<double> Options::class_weight_numbers() const {
  std::vector<double> numbers;
  if (class_weights.empty() || class_weights == "balanced") return numbers;
  std::istringstream list(class_weights);
  for (std::string number; std::getline(list, number, ',');)
    numbers.push_back(io::parse_number<double>("--class-weights", number, {1e-6, 1e6}));
  return numbers;
}

void add_own_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("model and data");
  table
      .text({.name = "--task",
             .help = fmt::format("{}", fmt::join(known_tasks(), ", ")),
             .role = decisive,
             .words = known_tasks()},
            options.task)
      .required = true;
  table.path({"--model", "model directory or TensorFlow checkpoint", local, "", "PATH"}, options.model).required = true;
  table.toggle({"--strict", "refuse weights of which any is missing, unused or mis-shaped"}, options.strict);
  table.path({"--train",
              "labelled file to train on: .tsv, .txt, .csv or .jsonl, also .gz; for words any of columns, for squad "
              "and squad2 .json"},
             options.train);
  table.path({"--eval", "labelled file to evaluate on; the model that does best on it is kept"}, options.evaluation);
  table.path({"--predict", "file to write predictions for; labels are not needed"}, options.prediction);
  table.path({"--vocab-file", "vocab.txt, for a model directory without one"}, options.vocab_file);
  table.toggle({"--cased", "with --vocab-file: keep case and accents", decisive}, options.cased);

  table.texts({"--sweep",
               "run once for each combination of the values of these flags, into directories of their own under "
               "--output; sweep.tsv compares them: learning-rate=2e-5,3e-5 seed=1,2",
               local, "", "FLAG=LIST"},
              options.sweep);

  table.heading("loss of texts' classes");
  table.text({"--class-weights",
              "weights of the classes in the loss, in the order of their labels, between commas; or balanced: the "
              "rarer a class is in --train, the more it weighs (default: all weigh the same)",
              decisive,
              "",
              "balanced|LIST",
              {"balanced"}},
             options.class_weights);
  table.number({"--label-smoothing", "share of the target that is spread over all classes", decisive},
               options.label_smoothing, {0.0, 0.999});

  table.heading("for --task custom");
  table.text({"--text-column", "name of the text's column, or its number from 0; for words a number (default 0)",
              decisive, "", "COLUMN"},
             options.columns.text);
  table.text({"--text-pair-column", "name or number of the second text's column", decisive, "", "COLUMN"},
             options.columns.pair);
  table.text({"--label-column", "name or number of the label's column; for words a number (default the last)", decisive,
              "", "COLUMN"},
             options.columns.label);
  table.text({"--id-column", "name or number of the column that predictions.tsv repeats", local, "", "COLUMN"},
             options.columns.id);
  table
      .toggle({"--header", "the first row of a .tsv or .csv names the columns (default); --no-header: it is data",
               decisive},
              options.columns.header)
      .negative = "--no-header";
  table.text({.name = "--kind",
              .help = "classification, regression or multi-label (default classification)",
              .role = decisive,
              .words = {"classification", "regression", "multi-label"}},
             options.kind);
  table.text({"--label-separator", "between the labels of one row, for multi-label (default ,)", decisive, "", "TEXT"},
             options.label_separator);

  table.heading("model and data");
  table.text(
      {"--language", "for --task xnli: the rows of --eval and --predict to read (default zh)", decisive, "", "CODE"},
      options.language);
  add_word_flags(table, options);
  add_ranking_flags(table, options);
  add_span_flags(table, options);
}

void add_flags(training::FlagTable& table, Options& options) {
  add_own_flags(table, options);
  training::add_flags(table, options.settings);
}

void complete(Options& options) {
  if (options.train.empty() && options.evaluation.empty() && options.prediction.empty())
    fail(Failure::usage, "--train, --eval, --predict: expected at least one of them, got none");
  refuse_unknown_task(options.task);
  refuse_flags_of_other_tasks(options);
  if (options.settings.patience > 0 && (options.train.empty() || options.evaluation.empty()))
    fail(Failure::usage, "--patience: expected with --train and --eval, got {}",
         options.train.empty() ? "no --train" : "no --eval");
  if (!options.columns.header && options.columns.text.empty())
    fail(Failure::usage, "--no-header: expected --text-column with a number from 0, got none");
  if (options.settings.plan_only && options.train.empty())
    fail(Failure::usage, "--plan: expected a file to --train on, got none");
  const bool is_kept = options.ranks() && !options.prediction.empty();  // what was predicted before a stop
  if (options.settings.resume && options.train.empty() && !is_kept)
    fail(Failure::usage, "--resume: expected a file to --train on, got none");
  std::error_code absent;  // a directory that is not there is no other one
  if (std::filesystem::equivalent(options.model, options.settings.output, absent))
    fail(Failure::usage, "--output: expected another directory than --model, got {}", options.settings.output.string());
  if (options.ranks()) complete_ranking(options);
  else if (!options.finds_spans() && !options.token_options())
    options.make_task();           // either refuses what it cannot read
  options.class_weight_numbers();  // refuses what is no number
  training::complete(options.settings);
}

}  // namespace bertrand::finetune
