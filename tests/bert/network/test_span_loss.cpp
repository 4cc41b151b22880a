// The loss of answer spans over sequences of different lengths.
#include <doctest/doctest.h>

#include "bert/network/golden.h"
#include "bert/network/heads.h"
#include "tensor/random.h"

using namespace bertrand;
using golden::cpu;

namespace {

bert::PackedBatch batch_of(std::span<const std::size_t> lengths) {
  std::vector<bert::Sequence> sequences;
  for (const std::size_t length : lengths)
    sequences.push_back(
        {.token_ids = std::vector<std::int32_t>(length, 1), .token_types = std::vector<std::int32_t>(length, 0)});
  return bert::pack(sequences, cpu());
}

struct Result {
  double loss = 0;
  std::vector<double> gradient;  // [tokens, 2]
};

Result loss_of(const std::vector<double>& logits, const bert::PackedBatch& batch,
               const bert::ForQuestionAnswering::Spans& spans, DType dtype) {
  const Variable given(ops::cast(ops::from_host(logits, {batch.tokens, 2}, cpu()), dtype), true);
  const Variable loss = bert::ForQuestionAnswering::loss(given, batch, spans);
  backward(loss);
  return {ops::item(loss.value()), ops::to_host<double>(given.grad())};
}

}  // namespace

TEST_CASE("in every type the span loss of a batch and its gradient are those of the sequences alone") {
  const std::vector<std::size_t> lengths = {5, 1, 9, 3};
  const bert::PackedBatch all = batch_of(lengths);
  const bert::ForQuestionAnswering::Spans spans{.starts = {1, 0, 7, 0}, .ends = {4, 0, 8, 2}, .count = 6};
  Random random(3);
  std::vector<double> logits;
  for (Dim i = 0; i < 2 * all.tokens; ++i) logits.push_back(static_cast<double>(random.below(64)) / 8 - 4);
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    CAPTURE(name_of(dtype));
    const Result together = loss_of(logits, all, spans, dtype);
    double sum = 0;
    std::vector<double> gradient;
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      const std::vector<double> own(logits.begin() + 2 * all.offsets[s], logits.begin() + 2 * all.offsets[s + 1]);
      const Result alone = loss_of(own, batch_of(std::span(lengths).subspan(s, 1)),
                                   {.starts = {spans.starts[s]}, .ends = {spans.ends[s]}, .count = spans.count}, dtype);
      sum += alone.loss;
      gradient.insert(gradient.end(), alone.gradient.begin(), alone.gradient.end());
    }
    CHECK(together.loss == doctest::Approx(sum).epsilon(1e-6));
    CHECK(golden::greatest_difference(together.gradient, gradient) <= 1e-7);
  }
}
