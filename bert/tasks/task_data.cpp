// The files of a task read, labelled and encoded together.
#include "bert/tasks/task_data.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_set>

#include "bert/tasks/attempt.h"
#include "bert/tasks/table_rows.h"
#include "io/ascii.h"
#include "io/error.h"
#include "io/json.h"
#include "io/numbers.h"
#include "io/say.h"
#include "io/units.h"

namespace bertrand::tasks {
namespace {

/// The files of a run as they are read.
struct Tables {
  std::optional<TableRows> train, evaluation, prediction;
};

/// What the data alone says: the task's labels, or those of the training file; without one, of the file to evaluate if
/// the model has no names of its own.
LabelSet data_labels(const Task& task, const Tables& tables, const LabelSet& model) {
  if (tables.train) return tables.train->labels();
  if (!task.labels.empty()) return LabelSet(task.labels);
  if (tables.evaluation && model.placeholders()) return tables.evaluation->labels();
  return {};
}

/// A model that is used as it is gives what it was trained to give.
void check_kind(const ModelOutputs& model, const Task& task) {
  const std::string expected = io::name_in(problem_types(), task.kind);
  if (model.problem_type.empty() || model.problem_type == expected) return;
  const bool custom = task.name == "custom";
  const auto own = io::find_choice(problem_types(), model.problem_type);
  fail(Failure::model, "{}: problem_type: expected {} for {}, got {}; hint: {}", model.config.string(), expected,
       custom ? fmt::format("--kind {}", io::name_in(kinds(), task.kind)) : "--task " + task.name, model.problem_type,
       custom && own ? fmt::format("--kind {}", io::name_in(kinds(), *own)) : "--train makes another model of it");
}

/// A second text may be read by the name of its column alone, so a file without it would go unnoticed.
void check_texts(const Tables& tables, const ModelOutputs& model, bool has_choices) {
  const auto kind_of = [](const Dataset& dataset) { return dataset.pairs ? "pairs of texts" : "single texts"; };
  const Dataset* first = nullptr;
  for (const auto* table : {&tables.train, &tables.evaluation, &tables.prediction}) {
    if (!*table) continue;
    const Dataset& dataset = (*table)->dataset();
    if (!first) first = &dataset;
    if (dataset.pairs != first->pairs)
      fail(Failure::input, "{}:1: columns: expected {} as in {}, got {}; hint: --text-column, --text-pair-column",
           dataset.file, kind_of(*first), first->file, kind_of(dataset));
    if (has_choices && dataset.labels != first->labels)
      fail(Failure::input, "{}:1: --choice-columns: expected the choices {} as in {}, got {}", dataset.file,
           in_braces(first->labels), first->file, in_braces(dataset.labels));
  }
  if (first && first->pairs && model.token_types < 2)
    fail(Failure::model, "{}: type_vocab_size: expected 2 for pairs of texts, got {}", model.config.string(),
         model.token_types);
}

std::string warnings_of(const Split& split) {
  std::string text;
  const Dataset& dataset = split.dataset;
  if (!dataset.skipped.empty())
    text += io::warning("{}:{}: columns: left out {} with a wrong number of them, the first here", dataset.file,
                        dataset.skipped.front().line, io::counted(dataset.skipped.size(), "row"));
  const bool left_out = !dataset.skipped.empty() || !dataset.bad_rows.empty();
  if (dataset.invalid.count > 0)
    text += io::warning("{}", dataset.invalid.message(dataset.file, left_out ? "found" : "dropped"));
  if (dataset.quoted_line > 0)
    text += io::warning("{}:{}: a cell is quoted as spreadsheets do it, and .tsv keeps its quotes; hint: save as .csv",
                        dataset.file, dataset.quoted_line);
  return text;
}

/// A label that is a number with a fraction, if all labels are numbers.
std::optional<std::string> score_among(const std::vector<std::string>& labels) {
  std::optional<std::string> fraction;
  for (const std::string& name : labels) {
    const auto value = io::number_in<double>(name);
    if (!value || !std::isfinite(*value)) return {};
    if (*value != std::floor(*value)) fraction = name;
  }
  return fraction;
}

/// A label that seems to be several.
std::string doubt_about_separator(const LabelSet& labels, const std::string& file) {
  const auto several = std::ranges::find_if(labels.names(), [](const std::string& name) {
    return name.starts_with('[') || name.find_first_of(";|") != std::string::npos;
  });
  if (several == labels.names().end()) return "";
  return io::warning("{}: labels: {} is one of them: is --label-separator the right one?", file,
                     io::shown(io::Json(*several)));
}

/// Labels that no one means.
std::string doubts_about_labels(const TaskData& data) {
  if (!data.train || !data.task.labels.empty()) return "";
  const std::string& file = data.train->dataset.file;
  if (data.task.kind == Kind::multi_label) return doubt_about_separator(data.labels, file);
  if (data.task.kind != Kind::classification || data.task.has_choices()) return "";
  const std::size_t rows = static_cast<std::size_t>(data.train->encoded.size());
  std::vector<std::string> names;  // of the file: those of the start model may be more
  for (const auto& [label, count] : data.train->classes)
    names.push_back(data.labels.name(static_cast<std::size_t>(label)));
  std::string text;
  if (names.size() > 2 && 2 * names.size() > rows)
    text += io::warning("{}: {} labels in {} rows: is --label-column the right one?", file, names.size(), rows);
  if (const auto score = score_among(names))
    text += io::warning("{}: all labels are numbers, {} among them: is it --kind regression?", file, *score);
  std::map<std::string, std::string> by_letters;
  for (const std::string& name : names) {
    const auto [other, is_new] = by_letters.emplace(io::ascii_lower(name), name);
    if (is_new) continue;
    text += io::warning("{}: the labels \"{}\" and \"{}\" differ in case alone: they are two classes", file,
                        other->second, name);
    break;
  }
  return text;
}

/// A model of pairs that is to be given single texts.
std::string doubt_about_texts(const TaskData& data) {
  if (data.pair_column.empty()) return "";
  for (const auto* split : {&data.evaluation, &data.prediction})
    if (*split && !(*split)->dataset.pairs)
      return io::warning(
          "{}: columns: expected pairs of texts as the model was trained on, with --text-pair-column {}, got single "
          "texts",
          (*split)->dataset.file, io::one_line(data.pair_column));
  return "";
}

std::string remarks_of(const Split& split, const char* what) {
  if (split.encoded.cut == 0) return "";
  return fmt::format("{}: {} of {} cut to --max-seq-length\n", split.dataset.file, split.encoded.cut,
                     io::counted(split.encoded.size(), what));
}

}  // namespace

std::size_t TaskData::text_bytes() const {
  std::size_t bytes = 0;
  for (const auto* split : {&evaluation, &prediction})
    if (*split) bytes += (*split)->dataset.examples.held_bytes();
  return bytes;
}

std::string TaskData::warnings() const {
  std::string text;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) text += warnings_of(**split);
  return text + doubt_about_texts(*this) + doubts_about_labels(*this);
}

std::string TaskData::remarks() const {
  std::string text;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) text += remarks_of(**split, task.has_choices() ? "choice" : "example");
  return text;
}

std::string TaskData::rows_of_classes() const {
  constexpr std::size_t kShown = 10;
  if (!train) return "";
  std::vector<std::pair<std::int32_t, std::int64_t>> counts(train->classes.begin(), train->classes.end());
  std::ranges::stable_sort(counts, std::greater(), [](const auto& count) { return count.second; });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(counts.size(), kShown); ++i)
    texts.push_back(
        fmt::format("{} {}", io::one_line(labels.name(static_cast<std::size_t>(counts[i].first))), counts[i].second));
  if (counts.size() > kShown) texts.push_back(fmt::format("… {} more", counts.size() - kShown));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string TaskData::columns() const {
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) return io::one_line((*split)->dataset.columns);
  return "";
}

std::vector<std::string> TaskData::bad_rows() const {
  std::vector<std::string> messages;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) std::ranges::move(messages_of((*split)->dataset.bad_rows), std::back_inserter(messages));
  return messages;
}

namespace {

/// Reads the tables and encodes their rows.
void read_and_encode(const TaskFiles& files, const ModelOutputs& model, const text::Tokenizer& tokenizer,
                     int max_length, Tables& tables, TaskData& data) {
  const auto read = [&](const std::filesystem::path& file, TableRows::Use use, std::optional<TableRows>& to) {
    const OnBadRow on_bad = use == TableRows::Use::predict ? files.on_bad_prediction : files.on_bad;
    if (!file.empty())
      to.emplace(data.task,
                 TableRows::Source{.file = file.string(), .use = use, .on_bad = on_bad, .spill = files.spill});
  };
  const Task& task = data.task;
  read(files.train, TableRows::Use::train, tables.train);
  read(files.evaluation, TableRows::Use::evaluate, tables.evaluation);
  read(files.prediction, TableRows::Use::predict, tables.prediction);
  check_texts(tables, model, task.has_choices());
  if (task.has_choices()) {
    for (const auto* table : {&tables.prediction, &tables.evaluation, &tables.train})
      if (*table) data.labels = (*table)->labels();  // those of the first file
  } else if (data.task.kind != Kind::regression) {
    const LabelSet own(model.labels);
    data.labels = choose_labels(data_labels(data.task, tables, own), own, tables.train.has_value(), model.config);
    if (!tables.train && !task.labels.empty() && data.labels.size() != task.labels.size())
      fail(Failure::model, "{}: id2label: expected the {} labels of --task {}, got {}", model.config.string(),
           task.labels.size(), task.name, own.size());
    // F1 is of the second label, whatever its number is in the model.
    if (task.labels.size() == 2) data.task.positive = data.labels.find(task.labels[1]).value();
    if (data.labels.empty())
      fail(Failure::model, "{}: id2label: expected the names of the classes or a file to --train, got none",
           model.config.string());
  }
  const TableRows::Encoding encoding{.labels = data.labels, .tokenizer = tokenizer, .max_length = max_length};
  if (tables.train) {
    TableRows::Splits splits = tables.train->encode(encoding, files.held_out);
    data.train = std::move(splits.rows);
    data.evaluation = std::move(splits.held_out);
    tables.train.reset();  // its rows
  }
  if (tables.evaluation) data.evaluation = tables.evaluation->encode(encoding).rows;
  tables.evaluation.reset();  // its rows, for memory alone
  if (tables.prediction) data.prediction = tables.prediction->encode(encoding).rows;
}

}  // namespace

TaskData read_task_data(const Task& task, const TaskFiles& files, const ModelOutputs& model,
                        const text::Tokenizer& tokenizer, int max_length) {
  TaskData data{.task = task, .pair_column = model.pair_column};
  if (files.train.empty()) check_kind(model, task);
  Tables tables;
  try {
    read_and_encode(files, model, tokenizer, max_length, tables, data);
  } catch (const OnlyBadRows& error) {  // of one file
    std::vector<std::string> bad = data.bad_rows();
    for (const auto* table : {&tables.train, &tables.evaluation, &tables.prediction})
      if (*table) std::ranges::move(messages_of((*table)->dataset().bad_rows), std::back_inserter(bad));
    bad.insert(bad.end(), error.rows().begin(), error.rows().end());
    std::unordered_set<std::string_view> seen;  // the refused file is among the tables, too
    std::vector<std::string> each;
    for (const std::string& row : bad)
      if (seen.insert(row).second) each.push_back(row);
    throw OnlyBadRows(std::move(each));
  }
  return data;
}

}  // namespace bertrand::tasks
