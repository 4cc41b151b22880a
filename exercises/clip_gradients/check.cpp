#include "clip_gradients/clip_gradients.h"

#include "grader.h"

const char* const kHint =
    "one norm of all tensors together and one factor for all of them; no factor if the norm is within the limit (or 0)";

void check(grader::Grader& grader) {
  using Tensors = std::vector<std::vector<double>>;
  const auto clip = [&](const char* what, Tensors gradients, double limit, double norm, const Tensors& expected,
                        double tolerance = 1e-12) {
    grader.begin(what);
    grader.entry("the norm that is returned", clip_gradients(gradients, limit), norm);
    for (std::size_t i = 0; i < expected.size(); ++i)
      grader.entries("tensor " + std::to_string(i), gradients[i], expected[i], tolerance);
  };
  clip("one tensor, norm 5, limit 1", {{3, -4}}, 1, 5, {{0.6, -0.8}});
  clip("three tensors, norm 13, limit 6.5", {{3, 0}, {4}, {-12, 0, 0}}, 6.5, 13, {{1.5, 0}, {2}, {-6, 0, 0}});
  clip("within the limit, bit by bit", {{0.1, 0.3}, {-0.7}}, 10, 0.7681145747868608, {{0.1, 0.3}, {-0.7}}, 0);
  clip("exactly at the limit, bit by bit", {{3}, {4}}, 5, 5, {{3}, {4}}, 0);
  clip("all zero", {{0, 0}, {0}}, 1, 0, {{0, 0}, {0}}, 0);
  clip("a tensor without entries", {{}, {2}}, 1, 2, {{}, {1}});
}
