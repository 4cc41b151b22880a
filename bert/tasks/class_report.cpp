#include "bert/tasks/class_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bert/tasks/cell.h"

namespace bertrand::tasks {
namespace {

/// `averaged`: how many labels the macro mean is of; the figures of all others are 0.
std::string table_of(const LabelSet& labels, const std::vector<ClassCounts>& counts, std::size_t averaged) {
  std::string text = "label\tprecision\trecall\tf1\tsupport\n";
  ClassFigures macro, weighted;
  std::int64_t support = 0;
  for (const ClassCounts& one : counts) support += one.truth;
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const ClassFigures f = counts[k].figures();
    text += report_row(labels.name(k), f);
    const double of_macro = ratio(1, static_cast<double>(averaged)),
                 of_weighted = ratio(static_cast<double>(f.support), static_cast<double>(support));
    for (const auto& [mean, weight] : {std::pair{&macro, of_macro}, {&weighted, of_weighted}}) {
      mean->precision += weight * f.precision;
      mean->recall += weight * f.recall;
      mean->f1 += weight * f.f1;
    }
  }
  macro.support = weighted.support = support;
  return text + report_row("macro avg", macro) + report_row("weighted avg", weighted);
}

}  // namespace

std::string report_row(const std::string& name, const ClassFigures& f) {
  return fmt::format("{}\t{:.4f}\t{:.4f}\t{:.4f}\t{}\n", cell(name), f.precision, f.recall, f.f1, f.support);
}

std::string class_report(const LabelSet& labels, std::span<const std::int32_t> predicted,
                         std::span<const std::int32_t> truth) {
  const std::vector<ClassCounts> counts = class_counts(predicted, truth, labels.size());
  const auto occurring =
      std::ranges::count_if(counts, [](const ClassCounts& one) { return one.truth > 0 || one.predicted > 0; });
  std::string text = table_of(labels, counts, static_cast<std::size_t>(occurring));
  if (labels.size() > kMostOfMatrix) return text;
  std::vector<std::vector<std::int64_t>> matrix(labels.size(), std::vector<std::int64_t>(labels.size(), 0));
  for (std::size_t i = 0; i < truth.size(); ++i)
    ++matrix[static_cast<std::size_t>(truth[i])][static_cast<std::size_t>(predicted[i])];
  text += "\ntrue \\ predicted";
  for (const std::string& name : labels.names()) text += '\t' + cell(name);
  text += '\n';
  for (std::size_t t = 0; t < labels.size(); ++t)
    text += fmt::format("{}\t{}\n", cell(labels.name(t)), fmt::join(matrix[t], "\t"));
  return text;
}

std::string multi_label_report(const LabelSet& labels, std::span<const std::int32_t> predicted,
                               std::span<const std::int32_t> truth) {
  return table_of(labels, label_counts(predicted, truth, labels.size()), labels.size());
}

}  // namespace bertrand::tasks
