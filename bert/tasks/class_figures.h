// How well a model finds the items of one class: three counts, and the figures that follow from them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace bertrand::tasks {

/// 0 if `whole` is 0.
inline double ratio(double part, double whole) { return whole == 0 ? 0 : part / whole; }

struct ClassFigures {
  double precision = 0, recall = 0, f1 = 0;
  std::int64_t support = 0;  ///< true items
};

/// Items that are of the class, that are taken for it, and both.
struct ClassCounts {
  std::int64_t truth = 0, predicted = 0, both = 0;

  ClassCounts& operator+=(const ClassCounts& other);
  /// What is undefined is 0.
  ClassFigures figures() const;
};

/// Those of each class, of items that have one class each.
std::vector<ClassCounts> class_counts(std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth,
                                      std::size_t classes);

/// Those of each label, of items with a 0 or 1 for each label: a row of `labels` for each item.
std::vector<ClassCounts> label_counts(std::span<const std::int32_t> predicted, std::span<const std::int32_t> truth,
                                      std::size_t labels);

}  // namespace bertrand::tasks
