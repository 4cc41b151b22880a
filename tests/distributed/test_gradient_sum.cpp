#include <doctest/doctest.h>

#include "distributed/gradient_sum.h"
#include "tensor/backends.h"
#include "tensor/ops.h"
#include "tensor/profiler.h"

using namespace bertrand;
using namespace bertrand::distributed;

namespace {

/// Adds up like the only replica, and records what was asked of it when.
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

/// A parameter's gradient becomes final: 2 everywhere.
void finish(GradientSum& sum, const Tensor& gradients, Dim begin, Dim count) {
  const Tensor window = gradients.window(begin, {count});
  ops::fill(window, 2);
  sum.ready(window);
}

/// The sum of values [first, first + count) as the tree defines it: halves that are powers of two on the left.
float tree(const std::vector<float>& values, std::size_t first, std::size_t count) {
  if (count == 1) return values[first];
  std::size_t left = 1;
  while (left * 2 < count) left *= 2;
  return tree(values, first, left) + tree(values, first + left, count - left);
}

/// The sum of a step whose micro-batches fill the gradients with these values.
Tensor sum_of(GradientSum& sum, const Tensor& gradients, const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  sum.begin(gradients, {.first = 0, .count = count}, count);
  for (const float value : values) {
    ops::fill(gradients, value);
    sum.add();
  }
  return sum.finish();
}

}  // namespace

TEST_CASE("gradients of micro-batches are summed in the fixed pairwise tree") {
  const auto backend = open_cpu({.threads = 1});
  SoloCollective solo(*backend);
  for (std::size_t count = 1; count <= 17; ++count) {
    std::vector<float> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(1.0f / static_cast<float>(3 + 7 * i));
    GradientSum sum(solo);
    for (int round = 0; round < 2; ++round) {  // the buffers are used again
      const Tensor gradients({16}, DType::f32, *backend);
      CHECK(sum_of(sum, gradients, values).same_memory(gradients));
      CHECK(ops::to_host<float>(gradients)[5] == tree(values, 0, count));
    }
  }
}

TEST_CASE("gradients of half types are summed in f32 by the same tree and a single one is left as it is") {
  const auto backend = open_cpu({.threads = 1});
  SoloCollective solo(*backend);
  for (const DType half : {DType::bf16, DType::f16})
    for (std::size_t count = 1; count <= 17; ++count) {
      std::vector<float> values;  // numbers that the types hold, whose sums they do not
      for (std::size_t i = 0; i < count; ++i) values.push_back(1.0f + 0x1p-7f * static_cast<float>(i * 5 % 128));
      GradientSum sum(solo);
      for (int round = 0; round < 2; ++round) {
        const std::size_t before = backend->memory().in_use;
        const Tensor gradients({1024}, half, *backend);
        const Tensor total = sum_of(sum, gradients, values);
        CHECK(total.dtype() == (count == 1 ? half : DType::f32));
        CHECK(ops::to_host<float>(total)[5] == tree(values, 0, count));
        const auto micro_batches = static_cast<std::int64_t>(count);
        const std::size_t buffers =
            count == 1
                ? 0
                : static_cast<std::size_t>(GradientSum::buffers({.first = 0, .count = micro_batches}, micro_batches)) +
                      1;
        if (round == 0) CHECK(backend->memory().in_use - before == 1024 * 2 + buffers * 1024 * 4);
      }
    }
}

TEST_CASE("one micro-batch needs no buffer and n need one for every digit 1 of the numbers below n") {
  const auto buffers = [](std::int64_t first, std::int64_t count, std::int64_t micro_batches) {
    return GradientSum::buffers({.first = first, .count = count}, micro_batches);
  };
  CHECK(buffers(0, 1, 1) == 0);
  CHECK(buffers(0, 2, 2) == 1);
  CHECK(buffers(0, 3, 3) == 1);
  CHECK(buffers(0, 4, 4) == 2);
  CHECK(buffers(0, 5, 5) == 2);
  CHECK(buffers(0, 8, 8) == 3);
  CHECK(buffers(3, 2, 5) == 1);  // 3 | 4: neither is the sibling of the other
  CHECK(buffers(2, 1, 3) == 0);
}

TEST_CASE("no step of several replicas needs more buffers than the most, which some step needs but for one") {
  for (const int replicas : {1, 2, 3, 4, 7, 16}) {
    int needed = 0;
    for (std::int64_t micro_batches = 1; micro_batches <= 300; ++micro_batches) {
      for (int rank = 0; rank < replicas; ++rank)
        needed = std::max(needed, GradientSum::buffers(share_of(micro_batches, rank, replicas), micro_batches));
      if (micro_batches < replicas) continue;
      CAPTURE(replicas);
      CAPTURE(micro_batches);
      const int most = GradientSum::most_buffers(micro_batches, replicas);
      CHECK(most >= needed);
      CHECK(most <= needed + (replicas > 1 ? 1 : 0));
    }
  }
}

TEST_CASE("the sum of a bucket starts when all gradients in it are final in whatever order that happens") {
  const auto backend = open_cpu({.threads = 1});
  Recorder recorder(*backend, true);
  GradientSum sum(recorder, 300);
  const Tensor gradients = beginning(*backend);
  sum.begin(gradients, {.first = 0, .count = 1}, 1);
  finish(sum, gradients, 688, 310);  // the 10 elements after it are of no parameter
  CHECK(recorder.log == "300");
  finish(sum, gradients, 96, 97);  // up to 193: rounded to 208
  finish(sum, gradients, 400, 288);
  CHECK(recorder.log == "300 300");
  finish(sum, gradients, 208, 192);
  CHECK(recorder.log == "300 300 300");
  finish(sum, gradients, 0, 96);
  CHECK(recorder.log == "300 300 300");  // 108 are left: not a bucket
  sum.add();
  CHECK(sum.finish().same_memory(gradients));
  CHECK(recorder.log == "300 300 300 108 end");
  CHECK(recorder.not_final == 15 + 10);  // of no parameter
}

TEST_CASE("no bucket starts before the last micro-batch of the replica") {
  const auto backend = open_cpu({.threads = 1});
  Recorder recorder(*backend, true);
  GradientSum sum(recorder, 300);
  const Tensor gradients = beginning(*backend);
  sum.begin(gradients, {.first = 0, .count = 2}, 2);
  finish(sum, gradients, 0, kElements);
  CHECK(recorder.log.empty());
  sum.add();
  ops::fill(gradients, -1);
  finish(sum, gradients, 400, 608);
  CHECK(recorder.log == "300 300");
  CHECK(recorder.not_final == 0);
  finish(sum, gradients, 0, 400);
  sum.add();
  for (const float value : ops::to_host<float>(sum.finish())) CHECK(value == 4);
}

TEST_CASE("buckets are cut at the same places by a replica without micro-batches and by one whose backward is over") {
  const auto backend = open_cpu({.threads = 1});
  Recorder nothing(*backend, true), late(*backend, true), alone(*backend, false);
  const Tensor gradients = ops::full({kElements}, 2, DType::f32, *backend);
  GradientSum first(nothing, 300), second(late, 300), third(alone, 300);
  first.begin(gradients, {.first = 5, .count = 0}, 5);
  CHECK(first.finish().same_memory(gradients));
  second.begin(gradients, {.first = 0, .count = 1}, 1);
  second.add();
  second.finish();
  CHECK(nothing.log == "300 300 300 108 end");
  CHECK(late.log == nothing.log);
  // If sums do not run beside the computation, all is summed at once.
  third.begin(gradients, {.first = 0, .count = 1}, 1);
  third.ready(gradients);
  third.add();
  third.finish();
  CHECK(alone.log == "1008 end");
}

TEST_CASE("gradients of a half type are copied to the type of sums bucket by bucket when they are final") {
  const auto backend = open_cpu({.threads = 1});
  for (const bool overlapping : {true, false}) {
    Recorder recorder(*backend, overlapping);
    GradientSum sum(recorder, 300);
    const Tensor gradients = ops::full({kElements}, 1, DType::bf16, *backend);
    sum.begin(gradients, {.first = 0, .count = 2}, 2);
    sum.add();
    ops::fill(gradients, -1);
    finish(sum, gradients, 496, 512);
    finish(sum, gradients, 0, 496);
    sum.add();
    const Tensor total = sum.finish();
    CHECK(total.dtype() == DType::f32);
    CHECK(recorder.not_final == 0);
    for (const float value : ops::to_host<float>(total)) CHECK(value == 3);
  }
}

TEST_CASE("a replica without micro-batches sums a half type in the type of sums as the others do") {
  const auto backend = open_cpu({.threads = 1});
  Recorder recorder(*backend, true);
  GradientSum sum(recorder, 300);
  sum.begin(beginning(*backend, DType::bf16), {.first = 5, .count = 0}, 5);
  CHECK(sum.finish().dtype() == DType::f32);
  CHECK(recorder.log == "300 300 300 108 end");
}

TEST_CASE("a gradient that was final in one step is not taken for final in the next") {
  const auto backend = open_cpu({.threads = 1});
  Recorder recorder(*backend, true);
  GradientSum sum(recorder, 300);
  const Tensor gradients = beginning(*backend);
  sum.begin(gradients, {.first = 0, .count = 1}, 1);
  finish(sum, gradients, 400, 288);  // backward does not reach what lies behind it
  sum.add();
  sum.finish();
  recorder.log.clear();
  sum.begin(gradients, {.first = 0, .count = 1}, 1);
  finish(sum, gradients, 688, 320);
  CHECK(recorder.log == "300");
  sum.add();
  sum.finish();
}

TEST_CASE("a bucket starts at once when its own gradients are final and no others") {
  const auto backend = open_cpu({.threads = 1});
  Recorder recorder(*backend, true);
  GradientSum sum(recorder, 304);
  const Tensor gradients = beginning(*backend);
  sum.begin(gradients, {.first = 0, .count = 1}, 1);
  finish(sum, gradients, 704, 304);
  CHECK(recorder.log == "304");
}

TEST_CASE("a profile has the time that a replica waits for sums beside its work") {
  const auto backend = open_cpu({.threads = 1});
  for (const bool overlapping : {true, false}) {
    Profiler profiler;
    Recorder recorder(*backend, overlapping);
    GradientSum sum(recorder);
    const Tensor gradients = beginning(*backend);
    backend->profiler = &profiler;
    sum_of(sum, gradients, {1});
    backend->profiler = nullptr;
    CHECK((profiler.totals().find("\"wait for gradients\",\"calls\":1,") != std::string::npos) == overlapping);
  }
}

TEST_CASE("a gradient that is no window of the flat gradients is ignored") {
  const auto backend = open_cpu({.threads = 1});
  Recorder recorder(*backend, true);
  GradientSum sum(recorder, 300);
  sum.begin(beginning(*backend), {.first = 0, .count = 1}, 1);
  sum.ready(ops::full({kElements}, 0, DType::f32, *backend));
  CHECK(recorder.log.empty());
}

TEST_CASE("a step that lacks a micro-batch of the replica, or has one too many, is a bug that is named") {
  const auto backend = open_cpu({.threads = 1});
  SoloCollective solo(*backend);
  GradientSum sum(solo);
  sum.begin(beginning(*backend), {.first = 0, .count = 2}, 2);
  sum.add();
  CHECK_THROWS_WITH_AS(sum.finish(), "gradients: expected 2 micro-batches of this replica, got 1", Error);
  sum.begin(beginning(*backend), {.first = 0, .count = 1}, 1);
  sum.add();
  CHECK_THROWS_WITH_AS(sum.add(), "gradients: expected 1 micro-batches of this replica, got more", Error);
}
