// Initial values of parameters. A parameter states the distribution; the ParameterSet draws from it, keyed by (seed,
// name).
#pragma once
#include "tensor/shape.h"

namespace bertrand::nn {

struct Initial {
  enum class Kind { constant, truncated_normal };
  Shape shape;
  Kind kind = Kind::constant;
  double value = 0;  ///< the constant, or the standard deviation
};

namespace init {
inline Initial zeros(const Shape& shape) { return {shape, Initial::Kind::constant, 0}; }
inline Initial ones(const Shape& shape) { return {shape, Initial::Kind::constant, 1}; }
/// N(0, σ²), drawn again beyond 2σ: BERT's initialiser (Devlin et al. 2018; σ = 0.02).
inline Initial truncated_normal(const Shape& shape, double standard_deviation) {
  return {shape, Initial::Kind::truncated_normal, standard_deviation};
}
}  // namespace init
}  // namespace bertrand::nn
