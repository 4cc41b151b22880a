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

Figures regression_figures(const Rows& rows, Drawn drawn) {
  std::vector<double> target, score;
  for (const std::size_t i : drawn) target.push_back(rows.rows[i].target), score.push_back(rows.rows[i].score);
  Figures all;
  for (const std::string& name : rows.metrics)
    all[name] = name == "pearson" ? tasks::pearson(score, target) : tasks::spearman(score, target);
  return all;
}

Figures class_figures(const Rows& rows, Drawn drawn) {
  std::vector<std::int32_t> truth, predicted;
  for (const std::size_t i : drawn) {
    truth.push_back(rows.truth(rows.rows[i])[0]);
    predicted.push_back(rows.predicted(rows.rows[i])[0]);
  }
  Figures all;
  for (const std::string& name : rows.metrics) {
    double& value = all[name];
    if (name == "accuracy") value = tasks::accuracy(predicted, truth);
    else if (name == "matthews") value = tasks::matthews(predicted, truth);
    else if (name == "f1" && rows.labels.size() == 2) value = tasks::f1(predicted, truth, rows.positive);
    else value = tasks::macro_f1(predicted, truth);
  }
  return all;
}

/// From the labels that rows have and not from a 0 or 1 for each label, of which there may be very many.
Figures multi_label_figures(const Rows& rows, Drawn drawn) {
  std::vector<tasks::ClassCounts> counts(rows.labels.size());
  double right = 0;
  for (const std::size_t i : drawn) {
    rows.count(rows.rows[i], counts);
    right += rows.rows[i].right;
  }
  const tasks::MultiLabelScores scores = tasks::multi_label_scores(counts, right / static_cast<double>(drawn.size()));
  Figures all;
  for (const std::string& name : rows.metrics)
    all[name] = name == "accuracy" ? scores.accuracy : name == "micro_f1" ? scores.micro_f1 : scores.macro_f1;
  return all;
}

Figures figures(const Rows& rows, Drawn drawn) {
  Figures all = rows.kind == tasks::Kind::regression       ? regression_figures(rows, drawn)
                : rows.kind == tasks::Kind::classification ? class_figures(rows, drawn)
                                                           : multi_label_figures(rows, drawn);
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
