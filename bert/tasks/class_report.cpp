#include "bert/tasks/class_report.h"

#include <fmt/format.h>

#include <vector>

#include "bert/tasks/cell.h"
#include "io/error.h"

namespace bertrand::tasks {
namespace {

/// Of one class.
struct Counts {
  double right = 0, predicted = 0, support = 0;
};

struct Figures {
  double precision = 0, recall = 0, f1 = 0, support = 0;
};

double share(double part, double all) { return all > 0 ? part / all : 0; }

Figures figures_of(const Counts& counts) {
  return {.precision = share(counts.right, counts.predicted),
          .recall = share(counts.right, counts.support),
          .f1 = share(2 * counts.right, counts.predicted + counts.support),
          .support = counts.support};
}

std::string row(const std::string& name, const Figures& f) {
  return fmt::format("{}\t{:.4f}\t{:.4f}\t{:.4f}\t{:.0f}\n", cell(name), f.precision, f.recall, f.f1, f.support);
}

std::string table_of(const LabelSet& labels, const std::vector<Counts>& counts) {
  std::string text = "label\tprecision\trecall\tf1\tsupport\n";
  Figures macro, weighted;
  double support = 0, occurring = 0;
  for (const Counts& one : counts) {
    support += one.support;
    occurring += one.support > 0 || one.predicted > 0;
  }
  for (std::size_t k = 0; k < counts.size(); ++k) {
    const Figures f = figures_of(counts[k]);
    text += row(labels.name(k), f);
    const double of_macro = share(f.support > 0 || counts[k].predicted > 0, occurring);
    for (const auto& [mean, weight] : {std::pair{&macro, of_macro}, {&weighted, share(f.support, support)}}) {
      mean->precision += weight * f.precision;
      mean->recall += weight * f.recall;
      mean->f1 += weight * f.f1;
    }
  }
  macro.support = weighted.support = support;
  return text + row("macro avg", macro) + row("weighted avg", weighted);
}

}  // namespace

std::string class_report(const LabelSet& labels, std::span<const std::int32_t> predicted,
                         std::span<const std::int32_t> truth) {
  check(predicted.size() == truth.size(), "class_report: expected {} predictions, got {}", truth.size(),
        predicted.size());
  std::vector<Counts> counts(labels.size());
  std::vector<std::vector<std::int64_t>> matrix(labels.size(), std::vector<std::int64_t>(labels.size(), 0));
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const auto p = static_cast<std::size_t>(predicted[i]), t = static_cast<std::size_t>(truth[i]);
    ++counts[p].predicted;
    ++counts[t].support;
    counts[t].right += p == t;
    ++matrix[t][p];
  }
  std::string text = table_of(labels, counts) + "\ntrue \\ predicted";
  for (const std::string& name : labels.names()) text += '\t' + cell(name);
  text += '\n';
  for (std::size_t t = 0; t < labels.size(); ++t)
    text += fmt::format("{}\t{}\n", cell(labels.name(t)), fmt::join(matrix[t], "\t"));
  return text;
}

std::string multi_label_report(const LabelSet& labels, std::span<const std::int32_t> predicted,
                               std::span<const std::int32_t> truth) {
  std::vector<Counts> counts(labels.size());
  for (std::size_t i = 0; i < truth.size(); ++i) {
    Counts& one = counts[i % labels.size()];
    one.predicted += predicted[i];
    one.support += truth[i];
    one.right += predicted[i] * truth[i];
  }
  return table_of(labels, counts);
}

}  // namespace bertrand::tasks
