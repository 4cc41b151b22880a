// Intervals of confidence by the bootstrap: the figure of rows that are drawn again and again.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "bert/report/rows.h"
#include "bert/tasks/metrics.h"

namespace bertrand::report {
namespace {

/// The columns that figures are made of.
struct Columns {
  std::vector<std::int32_t> truth, predicted;  ///< a class, or a 0 or 1 for each label
  std::vector<double> target, score;
  double loss = 0;  ///< the mean
};

Columns columns_of(const Rows& rows) {
  Columns columns;
  for (const Row& row : rows.rows) {
    if (rows.kind == tasks::Kind::regression) {
      columns.target.push_back(row.target);
      columns.score.push_back(row.score);
    } else if (rows.kind == tasks::Kind::classification) {
      columns.truth.push_back(static_cast<std::int32_t>(class_of(row.truth)));
      columns.predicted.push_back(static_cast<std::int32_t>(class_of(row.predicted)));
    } else {
      columns.truth.insert(columns.truth.end(), row.truth.begin(), row.truth.end());
      columns.predicted.insert(columns.predicted.end(), row.predicted.begin(), row.predicted.end());
    }
  }
  return columns;
}

/// As many rows, drawn with replacement.
Columns drawn_of(const Rows& rows, const Columns& all, std::mt19937_64& random) {
  Columns drawn;
  const std::size_t count = rows.rows.size(), width = all.truth.size() / count;
  const auto add = [](const auto& from, std::size_t i, std::size_t entries, auto& to) {
    to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(i * entries),
              from.begin() + static_cast<std::ptrdiff_t>((i + 1) * entries));
  };
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t i = random() % count;
    drawn.loss += rows.rows[i].loss / static_cast<double>(count);
    add(all.truth, i, width, drawn.truth);
    add(all.predicted, i, width, drawn.predicted);
    add(all.target, i, all.target.empty() ? 0 : 1, drawn.target);
    add(all.score, i, all.score.empty() ? 0 : 1, drawn.score);
  }
  return drawn;
}

std::map<std::string, double> figures(const Rows& rows, const Columns& columns) {
  std::map<std::string, double> all = {{"eval_loss", columns.loss}};
  const auto& [truth, predicted, target, score, loss] = columns;
  tasks::MultiLabelScores several;
  if (rows.kind == tasks::Kind::multi_label) several = tasks::multi_label_scores(predicted, truth, rows.labels.size());
  for (const std::string& name : rows.metrics) {
    double& value = all["eval_" + name];
    if (rows.kind == tasks::Kind::regression)
      value = name == "pearson" ? tasks::pearson(score, target) : tasks::spearman(score, target);
    else if (rows.kind == tasks::Kind::multi_label)
      value = name == "accuracy" ? several.accuracy : name == "micro_f1" ? several.micro_f1 : several.macro_f1;
    else if (name == "accuracy") value = tasks::accuracy(predicted, truth);
    else if (name == "matthews") value = tasks::matthews(predicted, truth);
    else if (name == "f1" && rows.labels.size() == 2) value = tasks::f1(predicted, truth, rows.positive);
    else value = tasks::macro_f1(predicted, truth);
  }
  return all;
}

}  // namespace

io::Json intervals(const Rows& rows) {
  constexpr std::size_t kRows = 4'000'000;  // that are drawn in all, so that it takes a second or two
  io::Json all = io::Json::object();
  const std::size_t count = rows.rows.size();
  if (count < 2) return all;
  const std::size_t resamples = std::clamp<std::size_t>(kRows / count, 200, 1000);
  std::mt19937_64 random(12345);
  std::map<std::string, std::vector<double>> values;
  const Columns columns = columns_of(rows);
  for (std::size_t k = 0; k < resamples; ++k)
    for (const auto& [name, value] : figures(rows, drawn_of(rows, columns, random))) values[name].push_back(value);
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

}  // namespace bertrand::report
