#include "support/op_checks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/op_values.h"

namespace bertrand::testing {
namespace {

constexpr std::uint64_t kWeights = 3;

/// Σ result ∘ fixed random weights: a scalar whose gradient reaches every entry of every input.
Variable project(const Variable& result) {
  return sum(
      mul(result, Variable(constant(result.shape(), result.value().dtype(), kWeights, result.value().backend()))));
}

std::string part(const OpCase& c, std::size_t index) {
  return c.name() + (index == 0 ? ", result" : ", gradient of input " + std::to_string(index - 1));
}

double relative_error(const Array& got, const Array& expected) {
  if (got.size() != expected.size()) return INFINITY;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / std::max(size, 1e-300));
}

void check_close(const OpCase& c, const Arrays& got, const Arrays& expected, const Tolerance& tolerance) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO(part(c, i));
    CHECK(relative_error(got[i], expected[i]) <= (i == 0 ? tolerance.result : tolerance.gradient));
  }
}

Arrays values_of(const Inputs& inputs) {
  Arrays values;
  for (const Variable& input : inputs) values.push_back(ops::to_host<double>(input.value()));
  return values;
}

Arrays gradients_of(const Inputs& inputs) {
  Arrays gradients;
  for (const Variable& input : inputs) gradients.push_back(input.grad() ? ops::to_host<double>(input.grad()) : Array{});
  return gradients;
}

/// The result of `compute`, then the gradients of the inputs.
template <class Compute>
Arrays differentiate(const Inputs& inputs, const Compute& compute) {
  Arrays all;
  {
    const Variable result = compute(inputs);
    all.push_back(ops::to_host<double>(result.value()));
    backward(project(result));
  }
  for (Array& gradient : gradients_of(inputs)) all.push_back(std::move(gradient));
  return all;
}

/// Central differences of the projected result of a case.
class Differences {
 public:
  Differences(const OpCase& c, const Inputs& inputs, Backend& backend) : case_(c), inputs_(inputs), backend_(backend) {
    const Array y = result();
    weights_ = uniform(static_cast<Dim>(y.size()), kWeights);
    double size = 0;
    for (std::size_t i = 0; i < y.size(); ++i) size += y[i] * weights_[i] * y[i] * weights_[i];
    rounding_ = 16 * 0x1p-52 * std::sqrt(size) / kStep;
  }

  /// The slope along `direction` of elements [first, first + size) of one input.
  double slope(std::size_t input, Dim first, const Array& direction) const {
    const Tensor at = inputs_[input].value().window(first, {static_cast<Dim>(direction.size())});
    const Array saved = ops::to_host<double>(at);
    const auto moved = [&](double step) {
      Array values = saved;
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * direction[i];
      backend_.upload(values.data(), at);
      return result();
    };
    const Array above = moved(kStep), below = moved(-kStep);
    backend_.upload(saved.data(), at);
    double difference = 0;
    for (std::size_t i = 0; i < above.size(); ++i) difference += (above[i] - below[i]) * weights_[i];
    return difference / (2 * kStep);
  }

  /// What rounding may do to a slope.
  double rounding() const { return rounding_; }

 private:
  static constexpr double kStep = 1e-5;

  Array result() const {
    const NoGrad guard;
    return ops::to_host<double>(case_.run(inputs_, backend_).value());
  }

  const OpCase& case_;
  const Inputs& inputs_;
  Backend& backend_;
  Array weights_;
  double rounding_ = 0;
};

constexpr double kGradientTolerance = 1e-7;

void check_entries(const OpCase& c, const Differences& differences, std::size_t input, const Array& gradient) {
  double size = 0;
  for (const double g : gradient) size += g * g;
  const auto count = static_cast<Dim>(gradient.size());
  const double typical = std::sqrt(size / static_cast<double>(count));
  const Dim most = std::clamp<Dim>(1'000'000 / count, 8, 1000), stride = std::max<Dim>(1, count / most);
  int wrong = 0;
  for (Dim j = 0; j < count; j += stride) {
    const double expected = differences.slope(input, j, {1}), got = gradient[static_cast<std::size_t>(j)];
    const double allowed =
        kGradientTolerance * std::max({std::abs(expected), std::abs(got), typical}) + differences.rounding();
    if (!(std::abs(expected - got) <= allowed) && wrong++ < 3)
      FAIL_CHECK(c.name() << ": d/d input " << input << " entry " << j << ": backward says " << got
                          << ", differences say " << expected);
  }
  CHECK_MESSAGE(wrong == 0, c.name() << ": " << wrong << " of every " << stride << "th of " << count
                                     << " entries of input " << input << " are wrong");
}

void check_directions(const OpCase& c, const Differences& differences, std::size_t input, const Array& gradient) {
  for (const std::uint64_t key : {21, 22}) {
    Array direction = uniform(static_cast<Dim>(gradient.size()), key);
    double got = 0, size = 0;
    for (std::size_t j = 0; j < direction.size(); ++j) {
      direction[j] = 2 * direction[j] - 1;
      got += gradient[j] * direction[j];
      size += gradient[j] * gradient[j] * direction[j] * direction[j];
    }
    const double expected = differences.slope(input, 0, direction);
    const double allowed = kGradientTolerance * std::max(std::sqrt(size), std::abs(got)) + differences.rounding();
    CHECK_MESSAGE(std::abs(expected - got) <= allowed, c.name() << ": along a direction of input " << input
                                                                << ": backward says " << got << ", differences say "
                                                                << expected);
  }
}

}  // namespace

Arrays run_both_ways(const OpCase& c, DType dtype, Backend& backend, DType drawn_in) {
  return differentiate(make_inputs(c, dtype, backend, {}, drawn_in),
                       [&](const Inputs& x) { return c.run(x, backend); });
}

void check_gradients(const OpCase& c, Backend& backend) {
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  backward(project(c.run(inputs, backend)));
  const Differences differences(c, inputs, backend);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].value().elements() == 0) continue;
    const Array gradient = ops::to_host<double>(inputs[i].grad());
    check_entries(c, differences, i, gradient);
    check_directions(c, differences, i, gradient);
  }
}

void check_definition(const OpCase& c, Backend& backend) {
  const Arrays got = run_both_ways(c, DType::f64, backend);
  if (c.formula) {
    INFO(c.name());
    CHECK(relative_error(got[0], c.formula(values_of(make_inputs(c, DType::f64, backend)))) <= 1e-13);
  }
  if (c.meaning) {
    const Inputs inputs = make_inputs(c, DType::f64, backend);
    check_close(c, got, differentiate(inputs, [&](const Inputs& x) { return c.meaning(x, backend); }), {1e-12, 1e-12});
  }
}

void check_against_f64(const OpCase& c, DType narrow, const Tolerance& tolerance, Backend& backend) {
  check_close(c, run_both_ways(c, narrow, backend, narrow), run_both_ways(c, DType::f64, backend, narrow), tolerance);
}

void check_against_backend(const OpCase& c, DType dtype, const Tolerance& tolerance, Backend& backend,
                           Backend& reference) {
  check_close(c, run_both_ways(c, dtype, backend, dtype), run_both_ways(c, dtype, reference, dtype), tolerance);
}

void check_same_bits_twice(const OpCase& c, DType dtype, Backend& backend) {
  CHECK_MESSAGE(run_both_ways(c, dtype, backend) == run_both_ways(c, dtype, backend), c.name()
                                                                                          << " in " << name_of(dtype));
}

namespace {

/// Any subset of the inputs may want gradients: those that do get the bits they get when all do. Of large inputs, which
/// are there for sums over many leaves, none and each alone.
void check_partly_wanted(const OpCase& c, const Arrays& all, Backend& backend) {
  Dim elements = 0;
  for (const Shape& shape : c.inputs) elements += shape.elements();
  for (std::size_t subset = 0; subset + 1 < std::size_t{1} << c.inputs.size(); ++subset) {
    if (elements > 20'000 && !std::has_single_bit(subset) && subset != 0) continue;
    std::vector<bool> wanted;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) wanted.push_back(subset >> i & 1);
    const Inputs inputs = make_inputs(c, DType::f64, backend, wanted);
    const Variable result = c.run(inputs, backend);
    CHECK_MESSAGE(ops::to_host<double>(result.value()) == all[0], part(c, 0));
    CHECK_MESSAGE(result.requires_grad() == (subset != 0), c.name());
    if (subset != 0) backward(project(result));
    const Arrays gradients = gradients_of(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      CHECK_MESSAGE(gradients[i] == (wanted[i] ? all[i + 1] : Array{}), part(c, i + 1) << ", subset " << subset);
  }
}

void check_no_grad(const OpCase& c, const Arrays& all, Backend& backend) {
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  const NoGrad guard;
  const Variable result = c.run(inputs, backend);
  CHECK_MESSAGE(!result.requires_grad(), c.name());
  CHECK_MESSAGE(ops::to_host<double>(result.value()) == all[0], part(c, 0));
}

/// Buffers full of what an earlier step left are overwritten, then added to.
void check_buffers(const OpCase& c, const Arrays& all, Backend& backend) {
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  for (const Variable& input : inputs) input.slot()->buffer = ops::full(input.shape(), 1e9, DType::f64, backend);
  const auto run = [&](const Inputs& x) { return c.run(x, backend); };
  check_close(c, differentiate(inputs, run), all, {0, 1e-14});  // a second writer's chain goes on where the first ended
  Arrays twice = all;
  for (std::size_t i = 1; i < twice.size(); ++i)
    for (double& g : twice[i]) g *= 2;
  check_close(c, differentiate(inputs, run), twice, {0, 1e-12});
}

/// Two uses of each leaf, whose values and gradients on the way are held by the graph alone.
void check_two_uses(const OpCase& c, const Arrays& all, Backend& backend) {
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  const auto passed_on = [](const Inputs& x) {
    Inputs own;
    for (const Variable& input : x) own.push_back(scale(input, 1));
    return own;
  };
  CHECK_MESSAGE(differentiate(inputs, [&](const Inputs& x) { return c.run(passed_on(x), backend); }) == all,
                c.name() << ", of temporaries");
  const Inputs again = make_inputs(c, DType::f64, backend);
  Arrays twice = all;
  for (Array& values : twice)
    for (double& v : values) v *= 2;
  const auto sum_of_two = [&](const Inputs& x) {
    const Inputs own = passed_on(x);
    return add(c.run(own, backend), c.run(own, backend));
  };
  check_close(c, differentiate(again, sum_of_two), twice, {0, 1e-12});
}

}  // namespace

void check_in_graph(const OpCase& c, Backend& backend) {
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  const Arrays before = values_of(inputs);
  const auto run = [&](const Inputs& x) { return c.run(x, backend); };
  const Arrays all = differentiate(inputs, run);
  CHECK_MESSAGE(values_of(inputs) == before, c.name() << " changes its inputs");
  check_partly_wanted(c, all, backend);
  check_no_grad(c, all, backend);
  check_buffers(c, all, backend);
  check_two_uses(c, all, backend);
}

}  // namespace bertrand::testing
