// Confusion, classes, lengths, calibration, and the rows that are worth a look.
#include "bert/report/evaluation.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "bert/report/answers.h"
#include "bert/report/intervals.h"
#include "bert/report/words.h"
#include "io/shortened.h"
#include "io/split.h"

namespace bertrand::report {
namespace {

using tasks::Kind;

io::Json named(const Rows& all, std::span<const std::int32_t> numbers) {
  io::Json names = io::Json::array();
  for (const std::int32_t k : numbers) names.push_back(all.labels[static_cast<std::size_t>(k)]);
  return names;
}

/// The class that a row of classes is and the one that the model says.
std::pair<std::size_t, std::size_t> classes_of(const Rows& all, const Row& row) {
  return {static_cast<std::size_t>(all.truth(row)[0]), static_cast<std::size_t>(all.predicted(row)[0])};
}

/// A row as a list of the page shows it.
io::Json row_json(const Rows& all, const Row& row) {
  const Shown shown = shown_of(row);
  io::Json json{{"id", io::shortened(shown.id, 100)},
                {"text", io::shortened(shown.text)},
                {"tokens", row.tokens},
                {"loss", row.loss}};
  if (shown.pair) json["pair"] = io::shortened(*shown.pair);
  if (all.kind == Kind::regression) {
    json["label"] = row.target;
    json["prediction"] = row.score;
    return json;
  }
  json["label"] = named(all, all.truth(row));
  json["prediction"] = named(all, all.predicted(row));
  if (all.kind == Kind::classification) {
    const auto [truth, predicted] = classes_of(all, row);
    json["probability"] = shown.probabilities[predicted];
    json["probability_of_label"] = shown.probabilities[truth];
  }
  return json;
}

/// The `most` rows for which `key` is largest, of those for which it is not negative.
io::Json first_rows(const Rows& all, std::size_t most, const std::function<double(const Row&)>& key) {
  std::vector<std::pair<double, const Row*>> keyed;
  for (const Row& row : all.rows)
    if (const double value = key(row); value >= 0) keyed.emplace_back(value, &row);
  std::ranges::stable_sort(keyed, [](const auto& a, const auto& b) { return a.first > b.first; });
  io::Json list = io::Json::array();
  for (std::size_t i = 0; i < std::min(most, keyed.size()); ++i) list.push_back(row_json(all, *keyed[i].second));
  return list;
}

io::Json classes(const Rows& all) {
  std::vector<tasks::ClassCounts> counts(all.labels.size());
  for (const Row& row : all.rows) all.count(row, counts);
  io::Json list = io::Json::array();
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const tasks::ClassFigures figures = counts[k].figures();
    list.push_back({{"name", all.labels[k]},
                    {"precision", figures.precision},
                    {"recall", figures.recall},
                    {"f1", figures.f1},
                    {"support", figures.support},
                    {"predicted", counts[k].predicted}});
  }
  return list;
}

/// "confusion", a row for each true class, if there are not too many, and "confused": the most frequent mistakes.
void add_confusion(const Rows& all, const Extent& extent, io::Json& json) {
  const std::size_t size = all.labels.size();
  using Pair = std::pair<std::size_t, std::size_t>;  // a true class and a predicted one
  std::map<Pair, std::int64_t> counts;
  for (const Row& row : all.rows) ++counts[classes_of(all, row)];
  if (size <= extent.classes) {
    std::vector<std::vector<std::int64_t>> matrix(size, std::vector<std::int64_t>(size, 0));
    for (const auto& [pair, count] : counts) matrix[pair.first][pair.second] = count;
    json["confusion"] = matrix;
  }
  std::erase_if(counts, [](const auto& entry) { return entry.first.first == entry.first.second; });
  std::vector<std::pair<Pair, std::int64_t>> mistakes(counts.begin(), counts.end());
  std::ranges::stable_sort(mistakes, [](const auto& a, const auto& b) { return a.second > b.second; });
  json["confused"] = io::Json::array();
  for (std::size_t i = 0; i < std::min<std::size_t>(mistakes.size(), 15); ++i) {
    const auto& [pair, count] = mistakes[i];
    json["confused"].push_back(
        {{"label", all.labels[pair.first]}, {"prediction", all.labels[pair.second]}, {"rows", count}});
  }
}

/// Rows by their tokens: up to 8, 16, 32, …
io::Json lengths(const Rows& all) {
  io::Json list = io::Json::array();
  const auto most = std::ranges::max(all.rows, {}, &Row::tokens).tokens;
  for (std::int64_t from = 0, to = 8; from < most; from = to, to *= 2) {
    double rows = 0, right = 0, loss = 0, error = 0;
    for (const Row& row : all.rows) {
      if (row.tokens <= from || row.tokens > to) continue;
      ++rows;
      right += row.right;
      loss += row.loss;
      error += std::abs(row.score - row.target);
    }
    if (rows == 0) continue;
    io::Json one{{"from", from + 1}, {"to", to}, {"rows", rows}};
    if (loss > 0) one["loss"] = loss / rows;  // words have none
    if (all.kind == Kind::regression) one["error"] = error / rows;
    else one["accuracy"] = right / rows;
    list.push_back(std::move(one));
  }
  return list;
}

/// The bins, and the mean distance of what the model is sure of from what is true.
io::Json calibration_json(const Calibration& calibration) {
  double count = 0, error = 0;
  for (const Calibration::Bin& bin : calibration.bins) count += bin.count;
  io::Json list = io::Json::array();
  for (const Calibration::Bin& bin : calibration.bins) {
    error += std::abs(bin.confidence - bin.right) / count;
    list.push_back({{"count", bin.count},
                    {"confidence", tasks::ratio(bin.confidence, bin.count)},
                    {"accuracy", tasks::ratio(bin.right, bin.count)}});
  }
  return {{"bins", std::move(list)}, {"error", error}};
}

io::Json scatter(const Rows& all, std::size_t most) {
  io::Json x = io::Json::array(), y = io::Json::array();
  const std::size_t stride = std::max<std::size_t>(1, all.rows.size() / std::max<std::size_t>(most, 1));
  for (std::size_t i = 0; i < all.rows.size(); i += stride) {
    x.push_back(all.rows[i].target);
    y.push_back(all.rows[i].score);
  }
  return {{"x", std::move(x)}, {"y", std::move(y)}};
}

/// The first line; an empty object in place of a damaged one.
io::Json header_of(std::string_view lines) {
  auto header = io::try_parse_json(lines.substr(0, lines.find('\n')));
  return header && header->is_object() ? *std::move(header) : io::Json::object();
}

io::Json rows_of_texts(std::string_view lines, const Extent& extent, const LetGo& let_go) {
  const Rows all = read_rows(lines, let_go);
  io::Json json{{"kind", io::name_in(tasks::kinds(), all.kind)}, {"labels", all.labels}, {"rows", all.rows.size()}};
  if (all.given > std::ssize(all.rows)) json["given"] = all.given;
  if (all.rows.empty()) return json;
  json["intervals"] = intervals(all);
  if (all.kind == Kind::regression) {
    json["lengths"] = lengths(all);
    json["scatter"] = scatter(all, extent.points);
    json["wrong"] = first_rows(all, extent.rows, [](const Row& row) { return row.loss; });
    return json;
  }
  add_class_figures(all, extent, json);
  json["wrong"] = first_rows(all, extent.rows, [](const Row& row) { return row.right ? -1 : row.loss; });
  json["uncertain"] = first_rows(all, extent.rows, [](const Row& row) { return row.doubt; });
  return json;
}

}  // namespace

void add_class_figures(const Rows& all, const Extent& extent, io::Json& json) {
  json["lengths"] = lengths(all);
  json["classes"] = classes(all);
  if (all.kind == Kind::classification) add_confusion(all, extent, json);
  json["calibration"] = calibration_json(all.calibration);
}

io::Json evaluation_of(std::string_view lines, const Extent& extent, const LetGo& let_go) {
  const io::Json header = header_of(lines);
  const auto kind = header.find("kind"), rows = header.find("rows");
  const auto is_of = [&](const char* name) { return kind != header.end() && *kind == name; };
  io::Json json = is_of("words")     ? words_of(lines, extent, let_go)
                  : is_of("answers") ? answers_of(lines, extent, let_go)
                                     : rows_of_texts(lines, extent, let_go);
  if (rows != header.end() && rows->is_number_integer() && *rows > json["rows"]) {
    json["written"] = *rows;
    json.erase("given"), json.erase("intervals");  // these are neither spread over all nor as many
  }
  return json;
}

io::Json classes_of(std::string_view table) {
  constexpr std::string_view kMeans[] = {"micro avg", "macro avg", "weighted avg"};
  io::Json list = io::Json::array();
  bool is_header = true;
  for (const std::string_view line : io::lines_of(table)) {
    if (std::exchange(is_header, false)) continue;
    if (line.empty()) break;  // what follows is the confusion matrix
    std::vector<std::string_view> cells;
    for (const std::string_view cell : io::split(line, '\t')) cells.push_back(cell);
    if (cells.size() != 5) return io::Json::array();
    if (std::ranges::count(kMeans, cells[0]) > 0) continue;
    io::Json one{{"name", std::string(cells[0])}};
    constexpr const char* kColumns[] = {"precision", "recall", "f1", "support"};
    for (std::size_t j = 0; j < 4; ++j) {
      double value = 0;
      std::from_chars(cells[j + 1].data(), cells[j + 1].data() + cells[j + 1].size(), value);
      one[kColumns[j]] = value;
    }
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace bertrand::report
