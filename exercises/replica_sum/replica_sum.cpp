// Exercise: a replica's sum. The gradients of a step's micro-batches are to be added up by several threads, and the
// result must have the same bits whatever their number. That is not so by itself: (a + b) + c and a + (b + c) are
// rounded differently. So the order is part of the task. It is a tree over the parts 0 … n−1, in which the left half of
// every node is the largest power of two below its size:
//
//   n = 5:  ((0 + 1) + (2 + 3)) + 4          n = 6:  ((0 + 1) + (2 + 3)) + (4 + 5)
//
// (distributed/pairwise_tree.h; Higham 1993, "The accuracy of floating point summation", on why a tree is also more
// exact.) Threads may share the entries or the parts, as long as each entry is added in this order. Add in float. There
// may be more threads than entries. std::jthread joins by itself.
//
//   scripts/grade.sh replica_sum
#include "replica_sum/replica_sum.h"

#include <thread>

std::vector<float> replica_sum(const std::vector<std::vector<float>>& parts, int threads) {
  std::vector<float> sum(parts[0].size());
  // your code
  return sum;
}
