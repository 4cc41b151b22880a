// eval_rows.jsonl, read back and checked.
#include "bert/report/rows.h"

#include <algorithm>
#include <cmath>

#include "io/signals.h"
#include "io/split.h"

namespace bertrand::report {
namespace {

constexpr double kLeast = 1e-12;  // no probability counts as less, so that each loss is finite

/// The numbers of the labels that a cell names, ascending.
std::vector<std::int32_t> numbers_of(io::JsonReader& line, const char* key, const Rows& all) {
  const std::size_t labels = all.labels.size();
  std::vector<std::int32_t> numbers;
  const io::Json* const cell = line.find(key);
  const auto add = [&](const io::Json& number) {
    if (!number.is_number_integer() || number.get<std::int64_t>() < 0 ||
        number.get<std::int64_t>() >= static_cast<std::int64_t>(labels))
      line.refuse(key, fmt::format("the number of a label below {}", labels), cell);
    numbers.push_back(number.get<std::int32_t>());
  };
  if (cell && cell->is_array() && all.kind == tasks::Kind::multi_label)
    for (const io::Json& number : *cell) add(number);
  else add(cell ? *cell : io::Json());
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<double> probabilities_of(const io::Json& list) {
  std::vector<double> probabilities;
  for (const io::Json& p : list)
    if (p.is_number()) probabilities.push_back(p.get<double>());
  return probabilities;
}

double loss_of(tasks::Kind kind, std::span<const double> probabilities, std::span<const std::int32_t> truth) {
  if (kind == tasks::Kind::classification)
    return -std::log(std::max(probabilities[static_cast<std::size_t>(truth[0])], kLeast));
  double sum = 0;
  for (std::size_t j = 0; j < probabilities.size(); ++j) {
    const bool is = std::ranges::binary_search(truth, static_cast<std::int32_t>(j));
    sum -= std::log(std::max(is ? probabilities[j] : 1 - probabilities[j], kLeast));
  }
  return sum / static_cast<double>(probabilities.size());
}

double doubt_of(tasks::Kind kind, std::vector<double> p) {
  if (kind == tasks::Kind::multi_label) {
    for (double& x : p) x = std::abs(2 * x - 1);
    return 1 - *std::ranges::min_element(p);
  }
  if (p.size() < 2) return 0;
  std::ranges::partial_sort(p, p.begin() + 2, std::greater<>());
  return 1 - (p[0] - p[1]);
}

void read_row(const Line& from, Rows& all) {
  io::JsonReader& line = from.json;
  line.text("id", ""), line.text("text"), line.text("text_pair", "");  // checked here, read by shown_of()
  constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;          // so that lengths can be doubled beyond it
  Row row{.line = from.text, .tokens = line.whole("tokens", {.most = kMostTokens}, 0)};
  if (all.kind == tasks::Kind::regression) {
    row.target = line.real("label", {});
    row.score = line.real("prediction", {});
    row.loss = (row.score - row.target) * (row.score - row.target);
    all.add(row, {}, {});
    return;
  }
  const std::vector<std::int32_t> truth = numbers_of(line, "label", all), said = numbers_of(line, "prediction", all);
  const io::Json& list = line.list("probabilities");
  const std::vector<double> probabilities = probabilities_of(list);
  if (probabilities.size() != all.labels.size())
    line.refuse("probabilities", fmt::format("{} numbers", all.labels.size()), &list);
  row.loss = loss_of(all.kind, probabilities, truth);
  row.doubt = doubt_of(all.kind, probabilities);
  all.add(row, truth, said);
  if (all.kind == tasks::Kind::classification)
    all.calibration.add(probabilities[static_cast<std::size_t>(said[0])], truth == said);
  else
    for (std::size_t j = 0; j < probabilities.size(); ++j)
      all.calibration.add(probabilities[j], std::ranges::binary_search(truth, static_cast<std::int32_t>(j)));
}

}  // namespace

void Calibration::add(double probability, bool right) {
  const double place = std::clamp(probability, 0.0, 1.0) * static_cast<double>(bins.size());
  Bin& bin = bins[std::min(bins.size() - 1, static_cast<std::size_t>(place))];
  ++bin.count;
  bin.confidence += probability;
  bin.right += right;
}

void Rows::add(Row row, std::span<const std::int32_t> truth, std::span<const std::int32_t> predicted) {
  row.first = numbers.size();
  row.truths = static_cast<std::uint32_t>(truth.size());
  row.predictions = static_cast<std::uint32_t>(predicted.size());
  row.right = std::ranges::equal(truth, predicted);
  numbers.insert(numbers.end(), truth.begin(), truth.end());
  numbers.insert(numbers.end(), predicted.begin(), predicted.end());
  rows.push_back(row);
}

void Rows::count(const Row& row, std::vector<tasks::ClassCounts>& counts) const {
  const std::span<const std::int32_t> is = truth(row);
  for (const std::int32_t k : is) ++counts[static_cast<std::size_t>(k)].truth;
  for (const std::int32_t k : predicted(row)) {
    tasks::ClassCounts& one = counts[static_cast<std::size_t>(k)];
    ++one.predicted;
    one.both += std::ranges::binary_search(is, k);
  }
}

void read_lines(std::string_view lines, const LetGo& let_go, const std::function<void(const Line& line)>& take) {
  constexpr std::size_t kMostHeld = std::size_t{4} << 20;  // bytes that were read
  std::size_t held = 0;
  std::int64_t number = 0;
  for (const std::string_view text : io::lines_of(lines)) {
    io::leave_if_requested("reading eval_rows.jsonl");
    const io::JsonSource source{fmt::format("eval_rows.jsonl:{}", ++number), Failure::input};
    const io::Json json = io::parse_json(text, source);
    io::JsonReader reader(json, source);
    take({number, text, reader});
    held += text.size();
    if (held > kMostHeld && let_go) let_go(), held = 0;
  }
}

io::Json read_again(std::string_view line) { return io::parse_json(line, {tasks::kEvaluationRows, Failure::input}); }

Shown shown_of(const Row& row) {
  const io::Json json = read_again(row.line);
  io::JsonReader line(json, {tasks::kEvaluationRows, Failure::input});
  Shown shown{.id = line.text("id", ""), .text = line.text("text")};
  if (line.find("text_pair")) shown.pair = line.text("text_pair", "");
  if (const io::Json* const list = line.find("probabilities")) shown.probabilities = probabilities_of(*list);
  return shown;
}

std::vector<std::string> texts_of(const io::Json& list) {
  std::vector<std::string> all;
  for (const io::Json& one : list)
    if (one.is_string()) all.push_back(one.get<std::string>());
  return all;
}

bool has_texts(std::string_view lines) {
  bool texts = false;
  read_lines(lines.substr(0, lines.find('\n')), {}, [&](const Line& line) {
    const std::string kind = line.json.text("kind", "");
    texts = kind == "classification" || kind == "regression" || kind == "multi-label";
  });
  return texts;
}

Rows read_rows(std::string_view lines, const LetGo& let_go) {
  Rows all;
  read_lines(lines, let_go, [&](const Line& from) {
    if (from.number > 1) return read_row(from, all);
    io::JsonReader& line = from.json;
    const auto kind = io::find_choice(tasks::kinds(), line.text("kind"));
    if (!kind) line.refuse("kind", "classification, regression or multi-label", line.find("kind"));
    all.kind = *kind;
    all.labels = texts_of(line.list("labels"));
    for (const std::string& name : texts_of(line.list("metrics"))) {
      const std::span known = tasks::metrics_of(all.kind);
      const auto metric = std::ranges::find(known, name, tasks::metric_name);
      if (metric == known.end())
        line.refuse("metrics", "metrics of " + io::name_in(tasks::kinds(), all.kind), line.find("metrics"));
      all.metrics.push_back(*metric);
    }
    all.positive = static_cast<std::int32_t>(line.whole("positive", {}, 1));
    all.given = line.whole("given", {}, 0);
    if (all.kind != tasks::Kind::regression && all.labels.empty()) line.refuse("labels", "names", line.find("labels"));
  });
  return all;
}

}  // namespace bertrand::report
