#pragma once
#include <vector>

/// Softmax over the entries of x that are visible; the others get probability 0.
std::vector<double> masked_softmax(const std::vector<double>& x, const std::vector<bool>& visible);
