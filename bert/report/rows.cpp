// eval_rows.jsonl, read back and checked.
#include "bert/report/rows.h"

#include <algorithm>
#include <cmath>

namespace bertrand::report {
namespace {

constexpr double kLeast = 1e-12;  // no probability counts as less, so that each loss is finite

/// The set of labels that a cell names, one 0 or 1 for each.
std::vector<std::int32_t> flags_of(io::JsonReader& line, const char* key, const Rows& all) {
  const std::size_t labels = all.labels.size();
  std::vector<std::int32_t> flags(labels, 0);
  const io::Json* const cell = line.find(key);
  const auto set = [&](const io::Json& number) {
    if (!number.is_number_integer() || number.get<std::int64_t>() < 0 ||
        number.get<std::int64_t>() >= static_cast<std::int64_t>(labels))
      line.refuse(key, fmt::format("the number of a label below {}", labels), cell);
    flags[number.get<std::size_t>()] = 1;
  };
  if (cell && cell->is_array() && all.kind == tasks::Kind::multi_label)
    for (const io::Json& number : *cell) set(number);
  else set(cell ? *cell : io::Json());
  return flags;
}

double loss_of(tasks::Kind kind, const Row& row) {
  if (kind == tasks::Kind::regression) return (row.score - row.target) * (row.score - row.target);
  double sum = 0;
  for (std::size_t j = 0; j < row.probabilities.size(); ++j) {
    const double p = row.probabilities[j];
    if (row.truth[j] == 1) sum -= std::log(std::max(p, kLeast));
    else if (kind == tasks::Kind::multi_label) sum -= std::log(std::max(1 - p, kLeast));
  }
  return kind == tasks::Kind::multi_label ? sum / static_cast<double>(row.probabilities.size()) : sum;
}

Row read_row(io::JsonReader& line, const Rows& all) {
  Row row{.id = line.text("id", ""), .text = line.text("text"), .pair = line.text("text_pair", "")};
  row.has_pair = line.find("text_pair") != nullptr;
  row.tokens = line.whole("tokens", {}, 0);
  if (all.kind == tasks::Kind::regression) {
    row.target = line.real("label", {});
    row.score = line.real("prediction", {});
  } else {
    row.truth = flags_of(line, "label", all);
    row.predicted = flags_of(line, "prediction", all);
    row.right = row.truth == row.predicted;
    const io::Json& probabilities = line.list("probabilities");
    for (const io::Json& p : probabilities)
      if (p.is_number()) row.probabilities.push_back(p.get<double>());
    if (row.probabilities.size() != all.labels.size())
      line.refuse("probabilities", fmt::format("{} numbers", all.labels.size()), &probabilities);
  }
  row.loss = loss_of(all.kind, row);
  return row;
}

}  // namespace

std::string cut(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most) + "…";
}

std::size_t class_of(const std::vector<std::int32_t>& flags) {
  return static_cast<std::size_t>(std::ranges::find(flags, 1) - flags.begin());
}

void read_lines(std::string_view lines, const std::function<void(std::int64_t number, io::JsonReader& line)>& take) {
  for (std::int64_t number = 1; !lines.empty(); ++number) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const io::JsonSource source{fmt::format("eval_rows.jsonl:{}", number), Failure::input};
    const io::Json json = io::parse_json(lines.substr(0, end), source);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    io::JsonReader line(json, source);
    take(number, line);
  }
}

std::vector<std::string> texts_of(const io::Json& list) {
  std::vector<std::string> all;
  for (const io::Json& one : list)
    if (one.is_string()) all.push_back(one.get<std::string>());
  return all;
}

bool has_texts(std::string_view lines) {
  bool texts = false;
  read_lines(lines.substr(0, lines.find('\n')), [&](std::int64_t, io::JsonReader& line) {
    const std::string kind = line.text("kind", "");
    texts = kind == "classification" || kind == "regression" || kind == "multi-label";
  });
  return texts;
}

Rows read_rows(std::string_view lines) {
  Rows all;
  read_lines(lines, [&](std::int64_t number, io::JsonReader& line) {
    if (number > 1) {
      all.rows.push_back(read_row(line, all));
      return;
    }
    const std::string kind = line.text("kind");
    if (kind != "classification" && kind != "regression" && kind != "multi-label")
      line.refuse("kind", "classification, regression or multi-label", line.find("kind"));
    all.kind = tasks::parse_kind(kind);
    all.labels = texts_of(line.list("labels"));
    all.metrics = texts_of(line.list("metrics"));
    all.positive = static_cast<std::int32_t>(line.whole("positive", {}, 1));
    all.given = line.whole("given", {}, 0);
    if (all.kind != tasks::Kind::regression && all.labels.empty()) line.refuse("labels", "names", line.find("labels"));
  });
  return all;
}

}  // namespace bertrand::report
