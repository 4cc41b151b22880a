// What a classifier gets right and wrong, class by class.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "bert/tasks/class_figures.h"
#include "bert/tasks/labels.h"
#include "bert/tasks/metrics.h"

namespace bertrand::tasks {

/// The most classes of which a confusion matrix is written: it grows with their square.
constexpr std::size_t kMostOfMatrix = 1000;

/// A row of the reports: a name, precision, recall and F1 with four decimals, support.
std::string report_row(const std::string& name, const ClassFigures& figures);

/// Tab-separated text: for each class precision, recall, F1 and support (how often it is true), then their means over
/// the classes that are true or predicted somewhere (macro) and over the examples (weighted), as scikit-learn's
/// classification_report. What is undefined counts as 0. If there are at most kMostOfMatrix classes, a blank line
/// follows and the confusion matrix, a row for each true class and a column for each predicted one.
std::string class_report(const LabelSet& labels, std::span<const std::int32_t> predicted,
                         std::span<const std::int32_t> truth);

/// The same for rows of 0 or 1, a column for each label, without a matrix. The macro mean is that over all labels.
std::string multi_label_report(const LabelSet& labels, std::span<const std::int32_t> predicted,
                               std::span<const std::int32_t> truth);

}  // namespace bertrand::tasks
