#include "apps/finetune/options.h"

#include <algorithm>
#include <map>
#include <set>

#include "apps/finetune/task_flags.h"
#include "distributed/processes.h"
#include "io/error.h"
#include "io/file_names.h"
#include "io/nearest_name.h"
#include "io/split.h"

namespace bertrand::finetune {
namespace {

constexpr const char* kLoss = "loss of texts' classes";

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

/// What is there to judge the model by while it is trained.
void complete_evaluation(const Options& options) {
  if (options.eval_split > 0 && (options.train.empty() || !options.evaluation.empty()))
    fail(Failure::usage, "--eval-split: expected with --train and without --eval, got {}",
         options.train.empty() ? "no --train" : "--eval too");
  if (options.eval_split_seed && options.eval_split == 0)
    fail(Failure::usage, "--eval-split-seed: expected with --eval-split, got none");
  const auto need_both = [&](const char* flag) {
    if (options.train.empty() || !options.evaluates())
      fail(Failure::usage,
           "{}: expected with --train and --eval, got {}; hint: --eval-split 0.1 takes a part of --train", flag,
           options.train.empty() ? "no --train" : "no --eval");
  };
  if (options.settings.patience > 0) need_both("--patience");
  if (!options.metric_for_best_model.empty()) need_both("--metric-for-best-model");
  if (options.settings.eval_every && !options.train.empty() && !options.evaluates())
    distributed::warn("--eval-every: of no effect without --eval");
}

/// A word about flags that are given and do nothing, as nothing is trained.
void warn_of_training_flags(const Options& options) {
  static const std::set<std::string> headings = {"optimizer", "logs and checkpoints", kLoss},
                                     names = {"--steps", "--epochs", "--shuffle", "--recompute-activations",
                                              "--profile"};
  Options any = options;
  training::FlagTable table;
  add_flags(table, any);
  std::vector<std::string> unused;
  for (const training::Flag& flag : table.flags())
    for (const std::string& name : {flag.name, flag.negative})
      if ((headings.contains(flag.group) || names.contains(flag.name)) && !name.empty() &&
          training::is_given(name, options.settings.command))
        unused.push_back(name);
  if (!unused.empty()) distributed::warn(fmt::format("{}: of no effect without --train", fmt::join(unused, ", ")));
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
      {"--layout",
       "words: a word a line, a blank line ends a sentence; rows: a sentence a line, words TAB labels; .jsonl, .ndjson "
       "and .json have a sentence a line in any case: {\"tokens\": [\"EU\", \"rejects\"], \"tags\": [\"B-ORG\", "
       "\"O\"]}, or ner_tags, pos_tags, labels",
       decisive},
      options.layout, {{"words", tasks::TokenLayout::words}, {"rows", tasks::TokenLayout::rows}});
  table.toggle({"--label-all-pieces",
                "all pieces of a word learn its label (those behind the first of B-X that of I-X, if there is one), "
                "not the first alone",
                decisive},
               options.label_all_pieces);
  table.number({"--doc-stride",
                "word pieces that the windows of a long sentence share; of squad and squad2 those from the beginning "
                "of a window "
                "to that of the next (default 128)",
                decisive, "a quarter of a window"},
               options.doc_stride, io::Range<int>{0, 65536}, "a quarter of a window");
}

/// "accuracy (what it is), f1 (what it is)"
std::string figures_text(const std::vector<tasks::Figure>& figures) {
  std::vector<std::string> texts;
  for (const tasks::Figure& figure : figures) texts.push_back(fmt::format("{} ({})", figure.name, figure.meaning));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::vector<std::string> known_tasks() {
  std::vector<std::string> names = tasks::task_names();
  for (const std::string& name : io::name_list(tasks::token_tasks())) names.push_back(name);
  names.insert(names.end(), {"squad", "squad2", "msmarco", "custom"});
  return names;
}

void refuse_unknown_task(const std::string& name) {
  const std::vector<std::string> names = known_tasks();
  if (std::ranges::find(names, name) != names.end()) return;
  static const std::map<std::string, std::string> of_others = {{"classification", "custom"},
                                                               {"text-classification", "custom"},
                                                               {"sequence-classification", "custom"},
                                                               {"regression", "custom --kind regression"},
                                                               {"multi-label", "custom --kind multi-label"},
                                                               {"token-classification", "ner, pos or tokens"},
                                                               {"qa", "squad or squad2"},
                                                               {"question-answering", "squad or squad2"},
                                                               {"ranking", "msmarco"},
                                                               {"multiple-choice", "swag, or custom --choice-columns"}};
  const auto other = of_others.find(name);
  fail(Failure::usage, "--task: expected one of {}, got {}{}", fmt::join(names, ", "), name,
       other != of_others.end() ? "; hint: --task " + other->second : io::did_you_mean(name, names));
}

void add_model_and_data_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("model and data");
  table
      .text({.name = "--task",
             .help = fmt::format("{}", fmt::join(known_tasks(), ", ")),
             .role = decisive,
             .words = known_tasks()},
            options.task, refuse_unknown_task)
      .required = true;
  table
      .path({"--model",
             "model directory or TensorFlow checkpoint; without --train the columns, lengths and other flags of the "
             "task that are not given are those of the run that made it, if they fit",
             local, "", "PATH"},
            options.model)
      .required = true;
  table.toggle({"--strict", "refuse weights of which any is missing, unused or mis-shaped"}, options.strict);
  table.path(
      {"--train",
       "labelled file to train on: .tsv, .txt, .csv, or .jsonl, .ndjson, .json with an object a line, also .gz "
       "or .zst; for words any of columns, or objects as --layout has them, for squad and squad2 SQuAD's .json, or a "
       "question a line"},
      options.train);
  table.path({"--eval", "labelled file to evaluate on; the model that does best on it is kept"}, options.evaluation);
  table.number(
      {"--eval-split",
       "share of --train that is not trained on but evaluated on, in place of --eval; which rows follows from "
       "--eval-split-seed, of texts about the same share of each label, of words whole sentences, of squad and squad2 "
       "whole paragraphs; 0 is none",
       decisive},
      options.eval_split, {0.0, 0.9});
  table.number({"--eval-split-seed",
                "number that the rows of --eval-split follow from; if --sweep has several of --seed, the one beside "
                "--sweep decides, so that all runs are evaluated on the same rows",
                decisive, "that of --seed"},
               options.eval_split_seed, io::Range<std::uint64_t>{0}, "that of --seed");
  table.text({"--metric-for-best-model",
              "figure of the evaluation that the best model is chosen by, which is the one kept, and that --patience "
              "looks at; of classes " +
                  figures_text(tasks::figures_of(tasks::custom_task({}))) +
                  "; another name lists those of the task. The default is the mean of all but the loss for texts, f1 "
                  "for ner, punct, squad and squad2, accuracy for other labels of words, mrr_at_10 for msmarco",
              decisive, "", "NAME"},
             options.metric_for_best_model);
  table.number(
      {"--patience",
       "evaluations in a row without a better model after which the run ends; 0 is off; --resume may change it",
       decisive},
      options.settings.patience, {0});
  table.path({"--predict", "file to write predictions for; labels are not needed"}, options.prediction);
  static const io::Choices<tasks::OnBadRow> bad_rows{{"fail", tasks::OnBadRow::hint},
                                                     {"report", tasks::OnBadRow::keep}};
  table.choice({"--on-bad-line",
                "a row of --predict that cannot be read, as one without text, ends the run, or stands in "
                "predictions.tsv without a prediction"},
               options.on_bad_row, bad_rows);
  table.path({"--vocab-file", "vocab.txt, for a model directory without one"}, options.vocab_file);
  table.toggle({"--cased", "with --vocab-file: keep case and accents", decisive}, options.cased);

  table.texts({"--sweep",
               "run once for each combination of the values of these flags, into directories of their own under "
               "--output; sweep.tsv compares them, sweep_seeds.tsv has their means over seeds: "
               "learning-rate=2e-5,3e-5 seed=1,2",
               local, "", "FLAG=LIST"},
              options.sweep);
}

void add_loss_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading(kLoss);
  table.text({"--class-weights",
              "weights of the classes in the loss, in the order of their labels, between commas; or balanced: the "
              "rarer a class is in --train, the more it weighs (default: all weigh the same)",
              decisive,
              "",
              "balanced|LIST",
              {"balanced"}},
             options.class_weights);
  table.number(
      {"--label-smoothing", "share of the target that is spread over all classes; none with --overfit-batch", decisive},
      options.label_smoothing, {0.0, 0.999});
}

void add_custom_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  table.heading("for --task custom");
  table.text(
      {"--text-column",
       "name of the text's column, or its number from 0 (default the first there is of text, question, sentence, "
       "sentence1, text_a, question1, premise, in capitals or not, or the only column beside the label's); for words "
       "a number (default 0)",
       decisive, "", "COLUMN"},
      options.columns.text);
  table.text(
      {"--text-pair-column",
       "name or number of the second text's column (default, without --text-column, the usual partner of the first: "
       "text_pair, sentence2, text_b, question2, hypothesis, passage, in capitals or not); with --choice-columns what "
       "each choice begins with (default nothing)",
       decisive, "", "COLUMN"},
      options.columns.pair);
  table.text({"--choice-columns",
              "for multiple choice: names or numbers of the columns with the texts of which one is right, as "
              "ending0,ending1, or of one whose values in JSON are lists, or {\"text\": [], \"label\": []}; the label "
              "is the name of a column, a number "
              "from 0, or a letter, A for the first",
              decisive, "", "COLUMNS"},
             options.columns.choices);
  table.text({"--label-column",
              "name or number of the label's column (default the first there is of label, labels, class, category, "
              "intent, target, score, gold_label, with --choice-columns also of answer, answerKey, in capitals or "
              "not); of multi-label also several columns of 0 and 1, "
              "as toxic,insult, whose names are the labels; for words a number (default the last)",
              decisive, "", "COLUMN"},
             options.columns.label);
  table.text(
      {"--id-column",
       "name or number of the column that predictions.tsv repeats (default id, idx, index, in capitals or not, or the "
       "row's number from 0)",
       local, "", "COLUMN"},
      options.columns.id);
  table
      .toggle({"--header", "the first row of a .tsv or .csv names the columns (default); --no-header: it is data",
               decisive},
              options.columns.header)
      .negative = "--no-header";
  table.text(
      {.name = "--kind",
       .help = "classification, regression or multi-label (default classification, without --train that of the model)",
       .role = decisive,
       .words = io::name_list(tasks::kinds())},
      options.kind);
  table.text({"--label-separator", "between the labels of one row, for multi-label (default ,)", decisive, "", "TEXT"},
             options.label_separator);
}

/// JSON lines of words have keys, and no columns.
void refuse_columns_of_objects(const Options& options) {
  for (const auto& file : {options.train, options.evaluation, options.prediction})
    if (!file.empty() && !io::is_json_lines(file)) return;
  const char* const flag = options.columns.text.empty() ? "--label-column" : "--text-column";
  if (io::find_choice(tasks::token_tasks(), options.task) && !(options.columns.text + options.columns.label).empty())
    fail(Failure::usage, "{}: expected a file with columns, got JSON lines, whose keys say what is what", flag);
}

}  // namespace

tasks::Task Options::make_task() const {
  if (task == "custom")
    return tasks::custom_task(
        {.kind = io::chosen("--kind", kind, tasks::kinds()), .columns = columns, .label_separator = label_separator});
  tasks::Task named = tasks::named_task(task);
  if (!named.language.empty()) named.language = language;
  return named;
}

std::optional<tasks::TokenOptions> Options::token_options() const {
  const auto token_task = io::find_choice(tasks::token_tasks(), task);
  if (!token_task) return std::nullopt;
  tasks::TokenOptions found{.task = *token_task, .label_all_pieces = label_all_pieces};
  const io::Range<std::size_t> range{0, 1023};
  found.columns.layout = layout;
  if (!columns.text.empty()) found.columns.word = io::parse_number("--text-column", columns.text, range);
  if (!columns.label.empty()) found.columns.label = io::parse_number("--label-column", columns.label, range);
  if (*token_task == tasks::TokenTask::ner) found.columns.label_key = "ner_tags";
  if (*token_task == tasks::TokenTask::pos) found.columns.label_key = "pos_tags";
  found.windows.overlap = doc_stride;
  return found;
}

std::vector<tasks::Figure> Options::figures() const {
  std::vector<tasks::Figure> figures;
  if (ranks()) figures = tasks::ranking_figures();
  else if (finds_spans()) figures = tasks::answer_figures(task == "squad2");
  else if (const auto words = token_options()) figures = tasks::figures_of(words->task);
  else figures = tasks::figures_of(make_task());
  tasks::decide_by(figures, metric_for_best_model);
  return figures;
}

std::vector<double> Options::class_weight_numbers() const {
  std::vector<double> numbers;
  if (class_weights.empty() || class_weights == "balanced") return numbers;
  for (const std::string& number : io::comma_list(class_weights))
    numbers.push_back(io::parse_number<double>("--class-weights", number, {1e-6, 1e6}));
  return numbers;
}

void add_own_flags(training::FlagTable& table, Options& options) {
  using enum training::Role;
  add_model_and_data_flags(table, options);
  add_loss_flags(table, options);
  add_custom_flags(table, options);
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
  training::add_flags(table, options.settings,
                      "128, of squad and squad2 384, of msmarco 512, without --train that of the run that made "
                      "--model");
}

void complete(Options& options) {
  if (options.train.empty() && options.evaluation.empty() && options.prediction.empty())
    fail(Failure::usage, "--train, --eval, --predict: expected at least one of them, got none");
  refuse_flags_of_other_tasks(options);
  refuse_columns_of_objects(options);
  complete_evaluation(options);
  if (options.train.empty()) warn_of_training_flags(options);
  if (std::error_code absent; options.prediction == "-" || std::filesystem::is_fifo(options.prediction, absent))
    fail(Failure::usage,
         "--predict: expected a regular file, got {}; hint: predict --model {} reads a pipe or standard input and "
         "answers line by line",
         options.prediction == "-" ? "standard input" : options.prediction.string(),
         options.train.empty() ? options.model.string() : options.settings.output.string());
  if (options.on_bad_row == tasks::OnBadRow::keep && options.prediction.empty())
    fail(Failure::usage, "--on-bad-line: expected with --predict, got no --predict");
  if (!options.columns.header && options.columns.text.empty())
    fail(Failure::usage, "--no-header: expected --text-column with a number from 0, got none");
  if (options.settings.is_rehearsal() && !options.settings.validate_only && options.train.empty())
    fail(Failure::usage, "{}: expected a file to --train on, got none",
         options.settings.plan_only ? "--plan"
         : options.settings.dry_run ? "--dry-run"
                                    : "--overfit-batch");
  const bool is_kept = options.ranks() && !options.prediction.empty();  // what was predicted before a stop
  if (options.settings.resume && options.train.empty() && !is_kept)
    fail(Failure::usage, "--resume: expected a file to --train on, got none");
  std::error_code absent;  // a directory that is not there is no other one
  if (std::filesystem::equivalent(options.model, options.settings.output, absent))
    fail(Failure::usage, "--output: expected another directory than --model, got {}", options.settings.output.string());
  if (options.ranks()) complete_ranking(options);
  // Refuses what the task cannot read, and a figure that it has not. The kind of a model that is used as it is follows.
  if (!options.train.empty() || options.task != "custom") options.figures();
  options.class_weight_numbers();  // refuses what is no number
  training::complete(options.settings);
}

}  // namespace bertrand::finetune
