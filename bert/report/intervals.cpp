// The figures of drawn rows, and what they lie in.
#include "bert/report/intervals.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "bert/tasks/metrics.h"
#include "io/signals.h"

namespace bertrand::report {
namespace {

using Figures = std::map<std::string, double>;
using Drawn = std::span<const std::size_t>;

/// The metrics of drawn rows.
std::function<double(tasks::Metric)> scores_of(const Rows& rows, Drawn drawn) {
  if (rows.kind == tasks::Kind::regression) {
    std::vector<double> target, score;
    for (const std::size_t i : drawn) target.push_back(rows.rows[i].target), score.push_back(rows.rows[i].score);
    return [target = std::move(target), score = std::move(score)](tasks::Metric metric) {
      return tasks::score(metric, score, target);
    };
  }
  if (rows.kind == tasks::Kind::classification) {
    std::vector<std::int32_t> truth, predicted;
    for (const std::size_t i : drawn) {
      truth.push_back(rows.truth(rows.rows[i])[0]);
      predicted.push_back(rows.predicted(rows.rows[i])[0]);
    }
    return [truth = std::move(truth), predicted = std::move(predicted), &rows](tasks::Metric metric) {
      return tasks::score(metric, predicted, truth, rows.labels.size(), rows.positive);
    };
  }
  // From the labels that rows have and not from a 0 or 1 for each label, of which there may be very many.
  std::vector<tasks::ClassCounts> counts(rows.labels.size());
  double right = 0;
  for (const std::size_t i : drawn) {
    rows.count(rows.rows[i], counts);
    right += rows.rows[i].right;
  }
  return [scores = tasks::multi_label_scores(counts, right / static_cast<double>(drawn.size()))](tasks::Metric metric) {
    return tasks::score(metric, scores);
  };
}

Figures figures(const Rows& rows, Drawn drawn) {
  Figures all;
  const auto score_of = scores_of(rows, drawn);
  for (const tasks::Metric metric : rows.metrics) all[std::string(tasks::metric_name(metric))] = score_of(metric);
  double& loss = all["loss"];
  for (const std::size_t i : drawn) loss += rows.rows[i].loss / static_cast<double>(drawn.size());
  return all;
}

}  // namespace

io::Json intervals(std::size_t rows, std::size_t resamples, const FiguresOf& figures) {
  io::Json all = io::Json::object();
  if (rows < 2) return all;
  std::mt19937_64 random(12345);
  std::map<std::string, std::vector<double>> values;
  std::vector<std::size_t> drawn(rows);
  for (std::size_t k = 0; k < resamples; ++k) {
    io::leave_if_requested("drawing intervals");
    for (std::size_t& row : drawn) row = random() % rows;
    for (const auto& [name, value] : figures(drawn)) values["eval_" + name].push_back(value);
  }
  for (auto& [name, list] : values) {
    std::ranges::sort(list);
    const auto at = [&, &list = list](double share) {
      return list[static_cast<std::size_t>(std::lround(share * static_cast<double>(list.size() - 1)))];
    };
    all[name] = {at(0.025), at(0.975)};
  }
  all["resamples"] = resamples;
  return all;
}

io::Json intervals(const Rows& rows) {
  constexpr std::size_t kDraws = 4'000'000;  // rows or pairs of labels in all, if so few are enough: a second or two
  const std::size_t count = std::max<std::size_t>({rows.rows.size(), rows.numbers.size() / 2, 1});
  return intervals(rows.rows.size(), std::clamp<std::size_t>(kDraws / count, 200, 1000),
                   [&](Drawn drawn) { return figures(rows, drawn); });
}

}  // namespace bertrand::report
