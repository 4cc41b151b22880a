#pragma once
#include <vector>

/// The sum of all parts, which are gradients of equal length, computed by `threads` threads.
std::vector<float> replica_sum(const std::vector<std::vector<float>>& parts, int threads);
