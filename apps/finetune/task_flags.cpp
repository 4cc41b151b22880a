#include "apps/finetune/task_flags.h"

#include <algorithm>

#include "bert/tasks/labels.h"
#include "bert/tasks/table.h"
#include "io/error.h"
#include "io/json.h"
#include "io/line_source.h"
#include "io/numbers.h"
#include "io/split.h"
#include "training/run/run_files.h"

namespace bertrand::finetune {
namespace {

/// The flags that some tasks alone understand, and these tasks.
std::vector<std::pair<std::string, std::vector<std::string>>> flags_of_tasks() {
  const std::vector<std::string> custom = {"custom"}, ranking = {"msmarco"},
                                 words = io::name_list(tasks::token_tasks()), spans = {"squad", "squad2"};
  const auto with = [](std::vector<std::string> names, const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
    return names;
  };
  const std::vector<std::string> columns = with(words, custom);
  std::vector<std::string> classes = with(tasks::task_names(), custom);
  std::erase(classes, "stsb");  // which has numbers
  std::vector<std::string> shared_classes = classes;
  std::erase(shared_classes, "swag");  // whose rows have choices of their own
  return {{"--text-column", columns},
          {"--label-column", columns},
          {"--text-pair-column", custom},
          {"--choice-columns", custom},
          {"--id-column", custom},
          {"--header", custom},
          {"--kind", custom},
          {"--label-separator", custom},
          {"--layout", words},
          {"--label-all-pieces", words},
          {"--doc-stride", with(words, spans)},
          {"--qrels", ranking},
          {"--eval-split", with(with(with(tasks::task_names(), words), custom), spans)},
          {"--on-bad-line", with(tasks::task_names(), custom)},
          {"--language", {"xnli"}},
          {"--max-query-length", with(spans, ranking)},
          {"--n-best-size", spans},
          {"--max-answer-length", spans},
          {"--null-score-diff-threshold", {"squad2"}},
          {"--class-weights", shared_classes},
          {"--label-smoothing", classes}};
}

bool understands(const std::string& task, const std::string& flag) {
  for (const auto& [name, understanding] : flags_of_tasks())
    if (name == flag) return std::ranges::find(understanding, task) != understanding.end();
  return true;
}

/// As on the command line. Throws Error(Failure::model), beginning with `where`, for what no flag has.
std::string text_of(const io::Json& value, const std::string& where) {
  if (value.is_structured() || value.is_null())
    fail(Failure::model, "{}: expected a text, a number, true or false, got {}", where, io::shown(value));
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// The names in the first row of a table, or the keys of the first of its objects; none if that has several lines, or
/// cannot be read: who reads the whole file says why.
std::vector<std::string> columns_of(const std::filesystem::path& file) {
  std::error_code absent;
  if (!std::filesystem::is_regular_file(file, absent)) return {};  // a pipe can be read but once
  const tasks::TableFormat format = tasks::table_format(file.string());
  try {
    io::LineSource lines(file, "rows");
    std::string_view line;
    return lines.next(line) ? tasks::parse_table(line, file.string(), format).columns : std::vector<std::string>{};
  } catch (const Error& error) {
    if (error.failure() != Failure::input) throw;
    return {};
  }
}

/// Whether the files that are read have all columns that are named. A number says nothing about another file.
bool data_have_columns(const Options& options) {
  const std::string &text = options.columns.text, &pair = options.columns.pair, &label = options.columns.label;
  const std::vector<std::string> choices = io::comma_list(options.columns.choices);
  for (const std::string& name : {text, pair, label})
    if (io::number_in<std::size_t>(name)) return false;
  for (const std::string& name : choices)
    if (io::number_in<std::size_t>(name)) return false;
  for (const auto& file : {options.evaluation, options.prediction}) {
    if (file.empty()) continue;
    const std::vector<std::string> columns = columns_of(file);
    const auto has = [&](const std::string& name) { return name.empty() || std::ranges::count(columns, name) > 0; };
    const bool has_label =
        has(label) || (options.kind == "multi-label" &&
                       std::ranges::all_of(tasks::split_labels(label, options.label_separator), has));
    if (!has(text) || !has(pair) || !std::ranges::all_of(choices, has) || (file == options.evaluation && !has_label))
      return false;
  }
  return true;
}

/// Whether --max-seq-length leaves room for a length of this name, else the reader of the data refuses it. Beside a
/// question stand [CLS], two [SEP] and a token of its context; beside a query, which counts its own, a token and [SEP];
/// beside the overlap of two windows of words [CLS], [SEP] and a token.
bool has_room(const Options& options, const std::string& name) {
  const std::int64_t length = *options.settings.max_seq_length;
  if (name == "--max-query-length") return options.max_query_length + (options.ranks() ? 2 : 4) <= length;
  if (name == "--doc-stride" && !options.finds_spans()) return options.doc_stride.value_or(0) + 3 <= length;
  return true;
}

}  // namespace

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

std::string take_flags_of_model(Options& options) {
  const std::filesystem::path record = options.model / training::kRunConfig;
  if (!training::is_own_run_config(record)) return "";
  const io::Json settings = io::read_json(record)["settings"];
  const auto has = [&](const std::string& name) { return settings.is_object() && settings.contains(name); };
  const std::string task = has("task") && settings["task"].is_string() ? settings["task"].get<std::string>() : "";
  if (task != options.task && !(options.finds_spans() && understands(task, "--n-best-size"))) return "";

  training::FlagTable table;
  add_own_flags(table, options);
  const auto is_given = [&](const std::string& name) { return training::is_given(name, options.settings.command); };
  std::string taken;
  const auto take = [&](const std::string& name) {
    if (!understands(options.task, name) || is_given(name) || !has(name.substr(2))) return;
    const std::string value =
        text_of(settings[name.substr(2)], fmt::format("{}: settings: {}", record.string(), name.substr(2)));
    const Options before = options;
    const training::Flag& flag = table.flag(name);
    const std::string usual = flag.target.value();
    if (value.empty() || value == usual) return;
    try {
      flag.target.set({value});
    } catch (const Error& error) {
      fail(Failure::model, "{}: settings: {}", record.string(), error.what());
    }
    if (!has_room(options, name)) options = before;
    else if (flag.target.value() != usual)  // 0.0 is 0
      taken += (taken.empty() ? "" : ", ") + name + " " + value;
  };
  const std::vector<std::string> of_columns = {"--text-column",  "--text-pair-column", "--choice-columns",
                                               "--label-column", "--header",           "--no-header"};
  if (options.task == "custom" && std::ranges::none_of(of_columns, is_given)) {
    const Options before = options;
    for (const char* name : {"--text-column", "--text-pair-column", "--choice-columns", "--label-column"}) take(name);
    if (options.kind == "multi-label") take("--label-separator");
    if (!data_have_columns(options)) {
      options = before;
      taken.clear();
    }
  }
  for (const char* name :
       {"--max-query-length", "--doc-stride", "--n-best-size", "--max-answer-length", "--null-score-diff-threshold"})
    take(name);
  return taken;
}

}  // namespace bertrand::finetune
