// Class weights and label smoothing against torch.nn.functional.cross_entropy of PyTorch 2.15 in f64.
#include "bert/objectives/weighted_loss.h"

#include <doctest/doctest.h>

#include "tensor/backends.h"

using namespace bertrand;
using objectives::LossWeights;

TEST_CASE("weights of classes and smoothed labels give the losses and gradients of PyTorch") {
  struct Case {
    LossWeights weights;
    double loss;
    std::vector<double> gradient;
  };
  const Case cases[] = {{{.smoothing = 0.1},
                         1.6905613307510263,
                         {0.03548926470167584, 0.0014448099843385291, -0.03693407468601437, -0.05372324804556711,
                          0.043125817666079556, 0.010597430379487545, -0.23173896810272276, 0.2282914473048901,
                          0.0034475207978327035, 0.0668190680055985, -0.1502770849499965, 0.08345801694439804}},
                        {{.classes = {0.5, 2.0, 1.25}},
                         1.2231420563934399,
                         {0.05155599768824609, 0.011503698020790426, -0.06305969570903651, -0.03312466574693354,
                          0.024216071058547242, 0.008908594688386296, -0.11689676930324208, 0.11135283794739925,
                          0.005543931355842841, 0.14146334369681288, -0.31424706186666007, 0.17278371816984728}},
                        {{.classes = {0.5, 2.0, 1.25}, .smoothing = 0.2},
                         1.3662927817620523,
                         {0.04371286043334412, -0.019868850998817418, -0.02384400943452672, 0.007918326685849155,
                          0.00010834335650357349, -0.008026670042352716, -0.10098540793735196, 0.1133861403120112,
                          -0.012400732374659208, 0.12301045566464992, -0.2632275518345037, 0.14021709616985384}}};
  const auto backend = open_cpu({.threads = 1});
  const std::vector<double> values = {0.5, -1.0, 2.0, 1.5, 0.25, -0.75, -2.0, 3.0, 0.0, 0.1, 0.2, 0.3};
  const std::vector<std::int32_t> labels = {2, 0, 0, 1};
  for (const Case& expected : cases) {
    CAPTURE(expected.weights.smoothing);
    double divisor = 0;
    for (const std::int32_t label : labels) divisor += expected.weights.weight(label);
    const Variable logits(ops::from_host(values, {4, 3}, *backend), true);
    const Variable loss = weighted_cross_entropy(logits, labels, expected.weights, divisor);
    backward(loss);
    CHECK(ops::to_host<double>(loss.value())[0] == doctest::Approx(expected.loss).epsilon(1e-14));
    const std::vector<double> gradient = ops::to_host<double>(logits.grad());
    for (std::size_t i = 0; i < gradient.size(); ++i)
      CHECK(gradient[i] == doctest::Approx(expected.gradient[i]).scale(0.01).epsilon(1e-12));
  }
}

TEST_CASE("balanced weights are those of scikit-learn and a class that does not occur weighs 1") {
  const std::vector<std::int32_t> labels = {0, 0, 0, 2};
  CHECK(objectives::balanced_weights(labels, 3) == std::vector<double>{4.0 / 9, 1, 4.0 / 3});
}
