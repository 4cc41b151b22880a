#pragma once
#include <vector>

/// Scales the gradients of all tensors so that their norm together is at most `limit`. Returns the norm before.
double clip_gradients(std::vector<std::vector<double>>& gradients, double limit);
