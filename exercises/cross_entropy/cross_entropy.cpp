// Exercise: cross-entropy with ignored labels. Masked language modelling asks for 15 of 100 words; the other rows have
// the label −100, which means: do not count. For the rows with a label y ≥ 0, of which there are `count`:
//
//   loss = Σ over those rows of (log Σ exp(z[j]) − z[y]) / count
//   dz[j] = (softmax(z)[j] − [j = y]) / count       [j = y] is 1 for the label, else 0
//
// and dz = 0 in the rows that are ignored. Without any label the loss is 0 and so is every gradient. Logits may be
// large: log Σ exp(z[j]) = max + log Σ exp(z[j] − max).
//
// (Bridle 1990, "Probabilistic interpretation of feedforward classification network outputs"; −100 is what PyTorch's
// ignore_index is by default.)
//
//   scripts/grade.sh cross_entropy
#include "cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>

CrossEntropy cross_entropy(const std::vector<double>& logits, const std::vector<int>& labels, int classes) {
  CrossEntropy out{.loss = 0, .dlogits = std::vector<double>(logits.size())};
  // your code
  return out;
}
