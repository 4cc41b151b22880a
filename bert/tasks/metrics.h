// The figures that tasks are judged by. What is undefined (a constant column, a class that never comes) counts as 0.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "bert/tasks/class_figures.h"
#include "bert/tasks/dataset.h"
#include "bert/tasks/task.h"
#include "io/spillable.h"

namespace bertrand::tasks {

/// The share of equal entries. All functions of two spans throw Failure::bug if the lengths differ or are 0.
double accuracy(std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth);

/// F1 of one class: 2 tp / (2 tp + fp + fn).
double f1(std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth, std::int32_t positive = 1);

/// The mean F1 of the classes that occur in either.
double macro_f1(std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth);

/// Matthews' correlation; for more than two classes Gorodkin's R_K (2004), which is the same for two.
double matthews(std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth);

double pearson(std::span<const double> x, std::span<const double> y);

/// Pearson's correlation of the ranks; equal values share the mean of their ranks.
double spearman(std::span<const double> x, std::span<const double> y);

/// Rows of 0 or 1, a column per label: the share of rows that agree everywhere; F1 over all entries; the mean of the
/// columns' F1.
struct MultiLabelScores {
  double accuracy = 0, micro_f1 = 0, macro_f1 = 0;
};
MultiLabelScores multi_label_scores(std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth,
                                    std::size_t labels);
/// The same of the counts of each label and the share of rows that agree everywhere.
MultiLabelScores multi_label_scores(std::span<const ClassCounts> labels, double accuracy);

/// One metric of the three kinds. Throw Failure::bug for one that is not of metrics_of() the kind. F1 is of the class
/// `positive` if there are two classes.
double score(Metric metric, std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth,
             std::size_t classes, std::int32_t positive);
double score(Metric metric, std::span<const double> predicted, std::span<const double> truth);
double score(Metric metric, const MultiLabelScores& scores);

/// The head's outputs, a row per example: what evaluation and prediction start from.
struct Logits {
  std::size_t outputs = 0;      ///< per example: classes, labels, or 1
  io::Spillable<float> values;  ///< [examples, outputs]

  std::span<const float> row(std::size_t example) const { return values.all().subspan(example * outputs, outputs); }
  std::size_t rows() const { return outputs ? static_cast<std::size_t>(values.size()) / outputs : 0; }
  /// For loops over all rows: now and then gives back the memory of those before this one.
  void let_go(std::size_t row) const {
    constexpr std::size_t kLetGo = std::size_t{1} << 22;  // values
    if (row * outputs % kLetGo < outputs) values.let_go();
  }
};

/// The place of the largest, the first of equals.
std::int32_t arg_max(std::span<const float> row);

/// The places of the `count` largest, the largest first, or of all if there are fewer; of equals the first comes first.
std::vector<std::size_t> largest(std::span<const double> values, std::size_t count);

/// e^x / Σ e^x, in double.
std::vector<double> softmax(std::span<const float> row);

/// What a head's outputs say, a number for each: of classes their softmax, of several labels 1 / (1 + e^−x), of a
/// regression the output itself.
std::vector<double> probabilities(Kind kind, std::span<const float> row);

/// −log softmax(row)[label], in double.
double cross_entropy(std::span<const float> row, std::int32_t label);

/// What is to be learnt of examples, one after the other, as targets_of has it.
using Targets = std::span<const std::int32_t>;

/// What a classifier decides, as targets are: the class of each example, or for several labels a 0 or 1 for each
/// example and label.
std::vector<std::int32_t> decisions(Kind kind, const Logits& logits);

/// The mean loss of these outputs, in double: cross-entropy, squared error, or binary cross-entropy over all entries.
double mean_loss(Kind kind, const Logits& logits, Targets targets);

/// `eval_loss` and the task's metrics as `eval_<metric>`.
std::map<std::string, double> evaluate(const Task& task, const Logits& logits, Targets targets);

}  // namespace bertrand::tasks
