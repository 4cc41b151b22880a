// Exercise: a masked softmax. A word in a sequence of 5 must not attend to the 3 rows of padding behind it: their
// probability is exactly 0, and the others are what they would be without them.
//
//   p[i] = exp(x[i] − max) / Σ exp(x[j] − max)     i visible; sum and maximum over the visible j
//   p[i] = 0                                       i not visible
//
// (Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3.) The maximum changes nothing on paper, and keeps
// exp from overflowing on a computer. What stands in hidden entries is rubbish: it may be huge, or NaN, and must not
// matter. If nothing is visible all probabilities are 0.
//
//   scripts/grade.sh masked_softmax
#include "masked_softmax/masked_softmax.h"

#include <algorithm>
#include <cmath>

std::vector<double> masked_softmax(const std::vector<double>& x, const std::vector<bool>& visible) {
  std::vector<double> p(x.size(), 0.0);
  // your code
  return p;
}
