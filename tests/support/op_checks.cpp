#include "support/op_checks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/op_values.h"

namespace bertrand::testing {
namespace {

constexpr std::uint64_t kWeights = 3;
const std::string kResultHint = "the kernel in tensor/cpu/ or tensor/cuda/, or the row's formula";
const std::string kGradientHint =
    "the derivative: the closure in autograd/, or its kernel in tensor/cpu/, tensor/cuda/";

/// Σ result ∘ fixed random weights: a scalar whose gradient reaches every entry of every input.
Variable project(const Variable& result) {
  return sum(
      mul(result, Variable(constant(result.shape(), result.value().dtype(), kWeights, result.value().backend()))));
}

/// What is computed where, and which check looks at it.
struct Subject {
  const OpCase& c;
  DType dtype;
  Backend& backend;
  std::string check;

  /// Entry 0 of an Arrays is the result, the others are gradients.
  std::string part(std::size_t index) const {
    return fmt::format("{}: {}, in {} on {}: {}", c.name(),
                       index == 0 ? "result" : fmt::format("gradient of input {}", index - 1), name_of(dtype),
                       backend.description(), check);
  }
};

double relative_error(const Array& got, const Array& expected) {
  if (got.size() != expected.size()) return INFINITY;
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += (got[i] - expected[i]) * (got[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  return std::sqrt(difference / std::max(size, 1e-300));
}

Arrays values_of(const Inputs& inputs) {
  Arrays values;
  for (const Variable& input : inputs) values.push_back(ops::to_host<double>(input.value()));
  return values;
}

/// The entry that is furthest from what is expected, with the inputs that have an entry of that number.
std::string worst_entry(const Subject& subject, const Array& got, const Array& expected) {
  if (got.size() != expected.size()) return fmt::format("got {} entries, expected {}", got.size(), expected.size());
  std::size_t worst = 0;
  double most = -1;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i]);
    if (difference <= most) continue;  // NaN is the worst
    worst = i;
    most = difference;
    if (std::isnan(difference)) break;
  }
  std::string text =
      fmt::format("worst entry {} of {}: got {}, expected {}", worst, got.size(), got[worst], expected[worst]);
  const Arrays inputs = values_of(make_inputs(subject.c, DType::f64, subject.backend, {}, subject.dtype));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].size() == got.size()) text += fmt::format(", input {} there is {}", i, inputs[i][worst]);
  return text;
}

void check_close(const Subject& subject, const Arrays& got, const Arrays& expected, const Tolerance& tolerance) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = relative_error(got[i], expected[i]), allowed = i == 0 ? tolerance.result : tolerance.gradient;
    const bool close = error <= allowed;
    CHECK_MESSAGE(close, subject.part(i) << ": relative error " << error << ", allowed " << allowed << "; "
                                         << worst_entry(subject, got[i], expected[i])
                                         << "; hint: " << (i == 0 ? kResultHint : kGradientHint));
  }
}

void check_same(const Subject& subject, std::size_t index, const Array& got, const Array& expected) {
  const bool same = got == expected;
  CHECK_MESSAGE(same, subject.part(index) << ": other bits; " << worst_entry(subject, got, expected));
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

  /// "x = 0.3": the input there, and the weight of the result if it has an entry of that number.
  std::string at(std::size_t input, Dim entry) const {
    const Array x = ops::to_host<double>(inputs_[input].value().window(entry, {1}));
    std::string text = fmt::format("x = {}", x[0]);
    if (static_cast<Dim>(weights_.size()) == inputs_[input].value().elements())
      text += fmt::format(", f(x) counts {} times", weights_[static_cast<std::size_t>(entry)]);
    return text;
  }

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

void check_entries(const Subject& subject, const Differences& differences, std::size_t input, const Array& gradient) {
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
      FAIL_CHECK(subject.part(input + 1) << ", entry " << j << ": backward says " << got << ", differences say "
                                         << expected << " (" << differences.at(input, j)
                                         << "); hint: " << kGradientHint);
  }
  const Dim seen = (count + stride - 1) / stride;
  CHECK_MESSAGE(wrong == 0, subject.part(input + 1)
                                << ": " << wrong << " of " << seen << " entries are wrong"
                                << (seen < count ? fmt::format(" ({} were left out)", count - seen) : std::string()));
}

void check_directions(const Subject& subject, const Differences& differences, std::size_t input,
                      const Array& gradient) {
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
    CHECK_MESSAGE(std::abs(expected - got) <= allowed,
                  subject.part(input + 1) << ", along a random direction: backward says " << got << ", differences say "
                                          << expected << "; hint: " << kGradientHint);
  }
}

/// Calls `look` with the differences and the gradient of each input that has elements.
template <class Look>
void against_differences(const OpCase& c, Backend& backend, const Look& look) {
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  backward(project(c.run(inputs, backend)));
  const Differences differences(c, inputs, backend);
  const Subject subject{c, DType::f64, backend, "central differences"};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].value().elements() > 0) look(subject, differences, i, ops::to_host<double>(inputs[i].grad()));
}

}  // namespace

Arrays run_both_ways(const OpCase& c, DType dtype, Backend& backend, DType drawn_in) {
  return differentiate(make_inputs(c, dtype, backend, {}, drawn_in),
                       [&](const Inputs& x) { return c.run(x, backend); });
}

void check_gradients(const OpCase& c, Backend& backend) {
  against_differences(
      c, backend, [](const Subject& subject, const Differences& differences, std::size_t input, const Array& gradient) {
        check_entries(subject, differences, input, gradient);
        check_directions(subject, differences, input, gradient);
      });
}

void check_directions(const OpCase& c, Backend& backend) {
  against_differences(
      c, backend, [](const Subject& subject, const Differences& differences, std::size_t input, const Array& gradient) {
        check_directions(subject, differences, input, gradient);
      });
}

void check_definition(const OpCase& c, Backend& backend) {
  const Arrays got = run_both_ways(c, DType::f64, backend);
  if (c.formula)
    check_close({c, DType::f64, backend, "its formula"}, {got[0]},
                {c.formula(values_of(make_inputs(c, DType::f64, backend)))}, {.result = 1e-13});
  if (!c.meaning) return;
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  check_close({c, DType::f64, backend, "its meaning in plain ops"}, got,
              differentiate(inputs, [&](const Inputs& x) { return c.meaning(x, backend); }), {1e-12, 1e-12});
}

void check_against_f64(const OpCase& c, DType narrow, const Tolerance& tolerance, Backend& backend) {
  check_close({c, narrow, backend, "the same in f64"}, run_both_ways(c, narrow, backend, narrow),
              run_both_ways(c, DType::f64, backend, narrow), tolerance);
}

void check_against_backend(const OpCase& c, DType dtype, const Tolerance& tolerance, Backend& backend,
                           Backend& reference) {
  check_close({c, dtype, backend, "the same on " + reference.description()}, run_both_ways(c, dtype, backend, dtype),
              run_both_ways(c, dtype, reference, dtype), tolerance);
}

void check_same_bits_twice(const OpCase& c, DType dtype, Backend& backend) {
  const Arrays once = run_both_ways(c, dtype, backend), again = run_both_ways(c, dtype, backend);
  for (std::size_t i = 0; i < once.size(); ++i) check_same({c, dtype, backend, "computed twice"}, i, again[i], once[i]);
}

namespace {

/// Any subset of the inputs may want gradients: those that do get the bits they get when all do. Of large inputs, which
/// are there for sums over many blocks, none and each alone.
void check_partly_wanted(const OpCase& c, const Arrays& all, Backend& backend) {
  Dim elements = 0;
  for (const Shape& shape : c.inputs) elements += shape.elements();
  for (std::size_t subset = 0; subset + 1 < std::size_t{1} << c.inputs.size(); ++subset) {
    if (elements > 20'000 && !std::has_single_bit(subset) && subset != 0) continue;
    std::vector<bool> wanted;
    std::string names;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      wanted.push_back(subset >> i & 1);
      if (wanted.back()) names += fmt::format(" {}", i);
    }
    const Subject subject{c, DType::f64, backend,
                          names.empty() ? "no input wants a gradient" : "gradients wanted by inputs" + names};
    const Inputs inputs = make_inputs(c, DType::f64, backend, wanted);
    const Variable result = c.run(inputs, backend);
    check_same(subject, 0, ops::to_host<double>(result.value()), all[0]);
    CHECK_MESSAGE(result.requires_grad() == (subset != 0), subject.part(0) << ": wants a gradient itself");
    if (subset != 0) backward(project(result));
    const Arrays gradients = gradients_of(inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      check_same(subject, i + 1, gradients[i], wanted[i] ? all[i + 1] : Array{});
  }
}

void check_no_grad(const OpCase& c, const Arrays& all, Backend& backend) {
  const Subject subject{c, DType::f64, backend, "under NoGrad"};
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  const NoGrad guard;
  const Variable result = c.run(inputs, backend);
  CHECK_MESSAGE(!result.requires_grad(), subject.part(0) << ": recorded");
  check_same(subject, 0, ops::to_host<double>(result.value()), all[0]);
}

Arrays doubled(Arrays all, std::size_t first) {
  for (std::size_t i = first; i < all.size(); ++i)
    for (double& v : all[i]) v *= 2;
  return all;
}

/// Buffers full of what an earlier step left are overwritten, then added to.
void check_buffers(const OpCase& c, const Arrays& all, Backend& backend) {
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  for (const Variable& input : inputs) input.slot()->buffer = ops::full(input.shape(), 1e9, DType::f64, backend);
  const auto run = [&](const Inputs& x) { return c.run(x, backend); };
  // A second writer's chain goes on where the first ended, so its last digits may differ.
  check_close({c, DType::f64, backend, "into a buffer with old numbers"}, differentiate(inputs, run), all, {0, 1e-14});
  check_close({c, DType::f64, backend, "into a buffer with a gradient"}, differentiate(inputs, run), doubled(all, 1),
              {0, 1e-12});
}

/// Two uses of each leaf, whose values and gradients on the way are held by the graph alone.
void check_two_uses(const OpCase& c, const Arrays& all, Backend& backend) {
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  const auto passed_on = [](const Inputs& x) {
    Inputs own;
    for (const Variable& input : x) own.push_back(scale(input, 1));
    return own;
  };
  const Arrays got = differentiate(inputs, [&](const Inputs& x) { return c.run(passed_on(x), backend); });
  for (std::size_t i = 0; i < all.size(); ++i)
    check_same({c, DType::f64, backend, "of inputs that only the graph holds"}, i, got[i], all[i]);
  const Inputs again = make_inputs(c, DType::f64, backend);
  const auto sum_of_two = [&](const Inputs& x) {
    const Inputs own = passed_on(x);
    return add(c.run(own, backend), c.run(own, backend));
  };
  check_close({c, DType::f64, backend, "used twice"}, differentiate(again, sum_of_two), doubled(all, 0), {0, 1e-12});
}

}  // namespace

void check_in_graph(const OpCase& c, Backend& backend) {
  const Inputs inputs = make_inputs(c, DType::f64, backend);
  const Arrays before = values_of(inputs);
  const Arrays all = differentiate(inputs, [&](const Inputs& x) { return c.run(x, backend); });
  const Arrays after = values_of(inputs);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool unchanged = after[i] == before[i];
    CHECK_MESSAGE(unchanged, c.name() << " changes its input " << i << " on " << backend.description());
  }
  check_partly_wanted(c, all, backend);
  check_no_grad(c, all, backend);
  check_buffers(c, all, backend);
  check_two_uses(c, all, backend);
}

}  // namespace bertrand::testing
