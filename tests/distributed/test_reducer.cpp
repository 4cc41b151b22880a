#include <doctest/doctest.h>

#include "distributed/reducer.h"
#include "tensor/backends.h"
#include "tensor/ops.h"

using namespace bertrand;
using namespace bertrand::distributed;

namespace {

/// Adds up like the only replica, and remembers what was asked of it when.
class Recorder : public SoloCollective {
 public:
  Recorder(Backend& backend, bool overlapping) : SoloCollective(backend), overlapping_(overlapping) {}
  bool overlaps() const override { return overlapping_; }
  void start_sum(std::vector<Addend> mine, std::int64_t parts, const Tensor& out) override {
    std::vector<double> values;
    if (!mine.empty()) values = ops::to_host<double>(ops::cast(mine.back().values, DType::f64));
    log += (log.empty() ? "" : " ") + std::to_string(out.elements());
    for (const double value : values) not_final += value < 0;
    if (!mine.empty()) all_reduce_sum(mine, parts, out);
  }
  void finish_sums() override { log += " end"; }

  std::string log;
  int not_final = 0;

 private:
  bool overlapping_;
};

constexpr Dim kElements = 1008;

/// The gradients, none of them final: −1 everywhere.
Tensor beginning(Backend& backend, DType dtype = DType::f32) { return ops::full({kElements}, -1, dtype, backend); }

/// A parameter becomes final: 2 everywhere.
void finish(Reducer& reducer, const Tensor& gradients, Dim begin, Dim count) {
  const Tensor part = gradients.window(begin, {count});
  gradients.backend().fill(part, 2);
  reducer.ready(part);
}

}  // namespace

TEST_CASE("a slice parts as soon as everything behind its beginning is final, in whatever order that happens") {
  const auto backend = open_cpu({.threads = 1});
  Recorder recorder(*backend, true);
  Reducer reducer(recorder, 300);
  const Tensor gradients = beginning(*backend);
  reducer.begin({.parts = 1, .addends = {{.values = gradients}}, .sum = gradients, .last = gradients});
  finish(reducer, gradients, 688, 310);  // the 10 elements behind it are nobody's
  CHECK(recorder.log == "300");
  finish(reducer, gradients, 96, 105);  // up to 201: rounded to 208
  finish(reducer, gradients, 400, 288);
  CHECK(recorder.log == "300 300");
  finish(reducer, gradients, 208, 192);
  CHECK(recorder.log == "300 300 300");
  finish(reducer, gradients, 0, 96);
  CHECK(recorder.log == "300 300 300");  // 108 are left: not a slice
  reducer.finish();
  CHECK(recorder.log == "300 300 300 108 end");
  CHECK(recorder.not_final == 7 + 10);  // what is nobody's
}

TEST_CASE("slices are cut at the same places by a replica that has nothing to add, and by one whose backward is over") {
  const auto backend = open_cpu({.threads = 1});
  Recorder nothing(*backend, true), late(*backend, true), alone(*backend, false);
  const Tensor gradients = ops::full({kElements}, 2, DType::f32, *backend);
  Reducer first(nothing, 300), second(late, 300), third(alone, 300);
  first.begin({.parts = 5, .addends = {}, .sum = gradients, .last = {}});
  first.finish();
  second.begin({.parts = 1, .addends = {{.values = gradients}}, .sum = gradients, .last = gradients});
  second.finish();
  CHECK(nothing.log == "300 300 300 108 end");
  CHECK(late.log == nothing.log);
  // Where nothing is gained by it, all leave at once.
  third.begin({.parts = 1, .addends = {{.values = gradients}}, .sum = gradients, .last = gradients});
  third.ready(gradients);
  third.finish();
  CHECK(alone.log == "1008 end");
}

TEST_CASE("gradients of a half type are copied to the type of sums slice by slice, when they are final") {
  const auto backend = open_cpu({.threads = 1});
  for (const bool overlapping : {true, false}) {
    Recorder recorder(*backend, overlapping);
    Reducer reducer(recorder, 300);
    const Tensor gradients = beginning(*backend, DType::bf16), sum = ops::full({kElements}, -1, DType::f32, *backend);
    const Tensor before = ops::full({kElements}, 1, DType::f32, *backend);
    reducer.begin({.parts = 2,
                   .addends = {{.first = 0, .count = 1, .values = before}, {.first = 1, .count = 1, .values = sum}},
                   .sum = sum,
                   .last = gradients});
    finish(reducer, gradients, 496, 512);
    finish(reducer, gradients, 0, 496);
    reducer.finish();
    CHECK(recorder.not_final == 0);
    for (const float value : ops::to_host<float>(sum)) CHECK(value == 3);
  }
}

TEST_CASE("a gradient that is no part of the flat ones is none of the reducer's business") {
  const auto backend = open_cpu({.threads = 1});
  Recorder recorder(*backend, true);
  Reducer reducer(recorder, 300);
  const Tensor gradients = beginning(*backend);
  reducer.begin({.parts = 1, .addends = {{.values = gradients}}, .sum = gradients, .last = gradients});
  reducer.ready(ops::full({kElements}, 0, DType::f32, *backend));
  CHECK(recorder.log.empty());
}
