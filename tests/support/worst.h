// The greatest of many differences, where none that is not a number may get lost.
#pragma once
#include <cmath>

namespace support {

/// The greater one, or NaN if either is: std::max(worst, NaN) is `worst`.
inline double worst_of(double worst, double next) { return std::isnan(worst) || worst >= next ? worst : next; }

}  // namespace support
