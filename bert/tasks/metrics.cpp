// The formulas of the figures.
#include "bert/tasks/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

#include "io/error.h"

namespace bertrand::tasks {
namespace {

using Classes = std::span<const std::int32_t>;

void check_lengths(std::size_t a, std::size_t b, const char* what) {
  check(a == b && a > 0, "{}: expected two columns of equal length above 0, got {} and {}", what, a, b);
}

double mean(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

/// A rank for each, of equal numbers the average one: twice that and less one, which no correlation sees.
std::vector<double> ranks_of(std::span<const double> x) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return x[i]; });
  std::vector<double> ranks(x.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && x[order[end]] == x[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = static_cast<double>(begin + end);
    begin = end;
  }
  return ranks;
}

/// log(sum(exp(x))), shifted by the largest so that nothing overflows.
double log_sum_exp(std::span<const float> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float x : row) sum += std::exp(x - largest);
  return largest + std::log(sum);
}

/// How many targets an example has.
std::size_t width_of(Kind kind, const Logits& logits) { return kind == Kind::multi_label ? logits.outputs : 1; }

double loss_of(Kind kind, std::span<const float> row, Targets targets) {
  if (kind == Kind::classification) return cross_entropy(row, targets[0]);
  if (kind == Kind::regression) return std::pow(static_cast<double>(row[0]) - std::bit_cast<float>(targets[0]), 2);
  double sum = 0;
  for (std::size_t j = 0; j < row.size(); ++j) {
    const double x = row[j];
    sum += std::max(x, 0.0) - x * targets[j] + std::log1p(std::exp(-std::abs(x)));
  }
  return sum / static_cast<double>(row.size());
}

[[noreturn]] void refuse(Metric metric, Kind kind) {
  fail(Failure::bug, "{}: expected a metric of {}, got another", metric_name(metric), io::name_in(kinds(), kind));
}

/// A metric of these outputs.
std::function<double(Metric)> scores_of(const Task& task, const Logits& logits, Targets targets) {
  if (task.kind == Kind::regression) {
    const std::span<const float> values = logits.values.all();
    std::vector<double> predicted(values.begin(), values.end()), truth;
    for (const std::int32_t target : targets) truth.push_back(std::bit_cast<float>(target));
    return [predicted = std::move(predicted), truth = std::move(truth)](Metric metric) {
      return score(metric, predicted, truth);
    };
  }
  std::vector<std::int32_t> predicted = decisions(task.kind, logits);
  if (task.kind == Kind::multi_label)
    return [scores = multi_label_scores(predicted, targets, logits.outputs)](Metric metric) {
      return score(metric, scores);
    };
  return [predicted = std::move(predicted), targets, classes = logits.outputs,
          positive = task.positive](Metric metric) { return score(metric, predicted, targets, classes, positive); };
}

}  // namespace

double accuracy(Classes predicted, Classes truth) {
  check_lengths(predicted.size(), truth.size(), "accuracy");
  std::size_t equal = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) equal += predicted[i] == truth[i];
  return static_cast<double>(equal) / static_cast<double>(truth.size());
}

double f1(Classes predicted, Classes truth, std::int32_t positive) {
  check_lengths(predicted.size(), truth.size(), "f1");
  double both = 0, either = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    both += predicted[i] == positive && truth[i] == positive;
    either += (predicted[i] == positive) + (truth[i] == positive);
  }
  return ratio(2 * both, either);
}

double macro_f1(Classes predicted, Classes truth) {
  check_lengths(predicted.size(), truth.size(), "macro_f1");
  std::map<std::int32_t, ClassCounts> classes;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    classes[truth[i]] += {.truth = 1, .both = predicted[i] == truth[i]};
    classes[predicted[i]] += {.predicted = 1};
  }
  double sum = 0;
  for (const auto& [one, counts] : classes) sum += counts.figures().f1;
  return sum / static_cast<double>(classes.size());
}

double matthews(Classes predicted, Classes truth) {
  check_lengths(predicted.size(), truth.size(), "matthews");
  std::map<std::int32_t, double> times_predicted, times_true;
  double correct = 0;
  const auto n = static_cast<double>(truth.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    ++times_predicted[predicted[i]];
    ++times_true[truth[i]];
    correct += predicted[i] == truth[i];
  }
  // R_K = (c n - Σ p_k t_k) / sqrt((n² - Σ p_k²)(n² - Σ t_k²))
  double agreement_by_chance = 0, predicted_squares = 0, true_squares = 0;
  for (const auto& [one, p] : times_predicted) {
    predicted_squares += p * p;
    if (const auto t = times_true.find(one); t != times_true.end()) agreement_by_chance += p * t->second;
  }
  for (const auto& [one, t] : times_true) true_squares += t * t;
  return ratio(correct * n - agreement_by_chance,
               std::sqrt(n * n - predicted_squares) * std::sqrt(n * n - true_squares));
}

double pearson(std::span<const double> x, std::span<const double> y) {
  check_lengths(x.size(), y.size(), "pearson");
  const double mean_x = mean(x), mean_y = mean(y);
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double dx = x[i] - mean_x, dy = y[i] - mean_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  return ratio(xy, std::sqrt(xx) * std::sqrt(yy));
}

double spearman(std::span<const double> x, std::span<const double> y) { return pearson(ranks_of(x), ranks_of(y)); }

MultiLabelScores multi_label_scores(Classes predicted, Classes truth, std::size_t labels) {
  check_lengths(predicted.size(), truth.size(), "multi_label_scores");
  check(labels > 0 && truth.size() % labels == 0, "multi_label_scores: expected rows of {} labels, got {} entries",
        labels, truth.size());
  const std::size_t rows = truth.size() / labels;
  double equal = 0;
  for (std::size_t r = 0; r < rows; ++r) {
    const Classes p = predicted.subspan(r * labels, labels), t = truth.subspan(r * labels, labels);
    equal += std::ranges::equal(p, t);
  }
  return multi_label_scores(label_counts(predicted, truth, labels), equal / static_cast<double>(rows));
}

MultiLabelScores multi_label_scores(std::span<const ClassCounts> labels, double accuracy) {
  MultiLabelScores scores{.accuracy = accuracy};
  ClassCounts sum;
  for (const ClassCounts& one : labels) {
    sum += one;
    scores.macro_f1 += one.figures().f1 / static_cast<double>(labels.size());
  }
  scores.micro_f1 = sum.figures().f1;
  return scores;
}

double score(Metric metric, Classes predicted, Classes truth, std::size_t classes, std::int32_t positive) {
  switch (metric) {
    case Metric::accuracy: return accuracy(predicted, truth);
    case Metric::f1: return classes == 2 ? f1(predicted, truth, positive) : macro_f1(predicted, truth);
    case Metric::macro_f1: return macro_f1(predicted, truth);
    case Metric::matthews: return matthews(predicted, truth);
    default: refuse(metric, Kind::classification);
  }
}

double score(Metric metric, std::span<const double> predicted, std::span<const double> truth) {
  if (metric == Metric::pearson) return pearson(predicted, truth);
  if (metric == Metric::spearman) return spearman(predicted, truth);
  refuse(metric, Kind::regression);
}

double score(Metric metric, const MultiLabelScores& scores) {
  if (metric == Metric::accuracy) return scores.accuracy;
  if (metric == Metric::micro_f1) return scores.micro_f1;
  if (metric == Metric::macro_f1) return scores.macro_f1;
  refuse(metric, Kind::multi_label);
}

std::int32_t arg_max(std::span<const float> row) {
  return static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

std::vector<std::size_t> largest(std::span<const double> values, std::size_t count) {
  std::vector<std::size_t> places(values.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto before = [&](std::size_t a, std::size_t b) { return std::tie(values[b], a) < std::tie(values[a], b); };
  count = std::min(count, places.size());
  std::partial_sort(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count), places.end(), before);
  places.resize(count);
  return places;
}

std::vector<double> softmax(std::span<const float> row) {
  const double largest = *std::ranges::max_element(row);
  std::vector<double> shares;
  for (const float x : row) shares.push_back(std::exp(x - largest));
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

std::vector<double> probabilities(Kind kind, std::span<const float> row) {
  if (kind == Kind::classification) return softmax(row);
  std::vector<double> each(row.begin(), row.end());
  if (kind == Kind::multi_label)
    for (double& x : each) x = 1 / (1 + std::exp(-x));
  return each;
}

double cross_entropy(std::span<const float> row, std::int32_t label) {
  return log_sum_exp(row) - row[static_cast<std::size_t>(label)];
}

std::vector<std::int32_t> decisions(Kind kind, const Logits& logits) {
  std::vector<std::int32_t> made;
  made.reserve(logits.rows() * width_of(kind, logits));
  for (std::size_t i = 0; i < logits.rows(); ++i) {
    logits.let_go(i);  // for memory alone
    const std::span<const float> row = logits.row(i);
    if (kind == Kind::classification) made.push_back(arg_max(row));
    else
      for (const float x : row) made.push_back(x >= 0);  // a probability of at least one half
  }
  return made;
}

double mean_loss(Kind kind, const Logits& logits, Targets targets) {
  const std::size_t width = width_of(kind, logits), rows = logits.rows();
  check_lengths(rows * width, targets.size(), "mean_loss");
  double sum = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    sum += loss_of(kind, logits.row(i), targets.subspan(i * width, width));
    logits.let_go(i);  // for memory alone
  }
  return sum / static_cast<double>(rows);
}

std::map<std::string, double> evaluate(const Task& task, const Logits& logits, Targets targets) {
  std::map<std::string, double> results = {{"eval_loss", mean_loss(task.kind, logits, targets)}};
  const auto score_of = scores_of(task, logits, targets);
  for (const Metric metric : task.metrics) results[fmt::format("eval_{}", metric_name(metric))] = score_of(metric);
  return results;
}

}  // namespace bertrand::tasks
