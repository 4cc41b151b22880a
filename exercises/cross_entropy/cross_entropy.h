#pragma once
#include <vector>

struct CrossEntropy {
  double loss = 0;
  std::vector<double> dlogits;  ///< [rows, classes], row after row
};

/// The mean of −log softmax(logits)[label] over the rows that have a label (0 or more), and its gradient.
CrossEntropy cross_entropy(const std::vector<double>& logits, const std::vector<int>& labels, int classes);
