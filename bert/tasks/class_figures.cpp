#include "bert/tasks/class_figures.h"

#include "io/error.h"

namespace bertrand::tasks {

ClassCounts& ClassCounts::operator+=(const ClassCounts& other) {
  truth += other.truth, predicted += other.predicted, both += other.both;
  return *this;
}

ClassFigures ClassCounts::figures() const {
  const auto right = static_cast<double>(both);
  return {.precision = ratio(right, static_cast<double>(predicted)),
          .recall = ratio(right, static_cast<double>(truth)),
          .f1 = ratio(2 * right, static_cast<double>(truth + predicted)),
          .support = truth};
}

std::vector<ClassCounts> class_counts(std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth,
                                      std::size_t classes) {
  check(predicted.size() == truth.size(), "class_counts: expected {} predictions, got {}", truth.size(),
        predicted.size());
  std::vector<ClassCounts> counts(classes);
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const auto p = static_cast<std::size_t>(predicted[i]), t = static_cast<std::size_t>(truth[i]);
    ++counts[p].predicted;
    ++counts[t].truth;
    if (p == t) ++counts[t].both;
  }
  return counts;
}

std::vector<ClassCounts> label_counts(std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth,
                                      std::size_t labels) {
  check(predicted.size() == truth.size(), "label_counts: expected {} predictions, got {}", truth.size(),
        predicted.size());
  std::vector<ClassCounts> counts(labels);
  for (std::size_t i = 0; i < truth.size(); ++i)
    counts[i % labels] += {.truth = truth[i], .predicted = predicted[i], .both = predicted[i] * truth[i]};
  return counts;
}

}  // namespace bertrand::tasks
