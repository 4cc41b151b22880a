// A sequence computes the same in any company.
#include <doctest/doctest.h>

#include "bert/network/heads.h"
#include "bert/network/small_bert.h"

using namespace bertrand;

namespace {

/// The rows of x that belong to sequence s of a batch: its tokens, or its one row if x has a row for each sequence.
std::vector<float> rows_of(const Tensor& x, const bert::PackedBatch& batch, std::size_t s) {
  if (x.shape()[0] == batch.sequences) return ops::to_host<float>(x.rows(static_cast<Dim>(s), static_cast<Dim>(s) + 1));
  return ops::to_host<float>(x.rows(batch.offsets[s], batch.offsets[s + 1]));
}

/// Everything that `compute` gives for a batch equals, bit by bit, what it gives for each of its sequences alone, in
/// evaluation and in training.
template <class Model, class Compute>
void check_company(Model& model, const Compute& compute) {
  Backend& backend = small::cpu();
  const nn::ParameterSet parameters(model, backend);
  small::disturb(parameters);
  const std::vector<bert::Sequence> sequences = small::sequences();
  const NoGrad guard;
  for (const bool training : {false, true}) {
    const auto run = [&](std::span<const bert::Sequence> some) {
      bert::PackedBatch batch = bert::pack(some, backend);
      const nn::Randomness randomness = training ? batch.randomness(5) : nn::Randomness{};
      std::vector<Variable> results = compute(model, batch, randomness);
      return std::pair(std::move(batch), std::move(results));
    };
    const auto [batch, together] = run(sequences);
    for (std::size_t s = 0; s < sequences.size(); ++s) {
      const auto [own_batch, alone] = run({&sequences[s], 1});
      for (std::size_t i = 0; i < together.size(); ++i) {
        INFO("training " << training << ", sequence " << s << ", result " << i);
        CHECK(rows_of(together[i].value(), batch, s) == rows_of(alone[i].value(), own_batch, 0));
      }
    }
  }
}

}  // namespace

TEST_CASE("every layer and every head computes for a sequence what it computes for it alone") {
  const bert::Config config = small::config(Activation::gelu);
  bert::ForPretraining pretraining(config);
  check_company(pretraining,
                [](const bert::ForPretraining& m, const bert::PackedBatch& batch, const nn::Randomness& randomness) {
                  std::vector<Variable> results;
                  const Variable x = m.bert(batch, randomness, {}, &results);
                  results.push_back(m.predictions(x, m.bert.embeddings.word_embeddings.weight));
                  results.push_back(m.seq_relationship((*m.bert.pooler)(gather_rows(x, batch.first_rows))));
                  return results;
                });
  const auto logits = [](const auto& m, const bert::PackedBatch& batch, const nn::Randomness& randomness) {
    return std::vector<Variable>{m(batch, randomness)};
  };
  bert::ForSequenceClassification sequences(config, 3);
  check_company(sequences, logits);
  bert::ForTokenClassification tokens(config, 4);
  check_company(tokens, logits);
  bert::ForQuestionAnswering answers(config);
  check_company(answers, logits);
}

TEST_CASE("the order of sequences in a batch changes nothing but the order of results") {
  Backend& backend = small::cpu();
  bert::ForSequenceClassification model(small::config(Activation::gelu), 3);
  const nn::ParameterSet parameters(model, backend);
  small::disturb(parameters);
  std::vector<bert::Sequence> sequences = small::sequences();
  const auto logits = [&] {
    const bert::PackedBatch batch = bert::pack(sequences, backend);
    return ops::to_host<float>(model(batch, batch.randomness(5)).value());
  };
  const std::vector<float> forwards = logits();
  std::reverse(sequences.begin(), sequences.end());
  const std::vector<float> backwards = logits();
  for (std::size_t s = 0; s < 4; ++s)
    CHECK(std::equal(forwards.begin() + 3 * static_cast<int>(s), forwards.begin() + 3 * static_cast<int>(s + 1),
                     backwards.begin() + 3 * static_cast<int>(3 - s)));
}

TEST_CASE("a batch that is packed again holds what a new one holds, in the same memory, and keeps its sizes") {
  Backend& backend = small::cpu();
  const std::vector<bert::Sequence> first = {bert::sequence_of(std::vector{2, 7, 3}, 3, 1),
                                             bert::sequence_of(std::vector{2, 8, 9, 3, 4}, 2, 2)},
                                    second = {bert::sequence_of(std::vector{2, 5, 5, 6, 3}, 1, 3),
                                              bert::sequence_of(std::vector{2, 1, 3}, 2, 4)};
  bert::PackedBatch batch = bert::pack(first, backend);
  const bert::PackedBatch before = batch, expected = bert::pack(second, backend);
  bert::repack(second, batch);
  for (const auto part : {&bert::PackedBatch::token_ids, &bert::PackedBatch::token_types, &bert::PackedBatch::positions,
                          &bert::PackedBatch::row_keys, &bert::PackedBatch::first_rows}) {
    CHECK((batch.*part).same_memory(before.*part));
    CHECK((batch.*part).shape() == (expected.*part).shape());
    CHECK(ops::to_host<std::int64_t>(batch.*part) == ops::to_host<std::int64_t>(expected.*part));
  }
  CHECK(batch.packing.offsets.same_memory(before.packing.offsets));
  CHECK(ops::to_host<std::int32_t>(batch.packing.offsets) == std::vector{0, 5, 8});
  CHECK(batch.offsets == std::vector{0, 5, 8});
  CHECK(ops::to_host<std::int32_t>(batch.first_rows) == std::vector{0, 5});
  CHECK(ops::to_host<std::int32_t>(batch.token_types) == std::vector{0, 1, 1, 1, 1, 0, 0, 1});
  const auto refused = [&](const std::vector<bert::Sequence>& others) {
    CHECK_THROWS_WITH_AS(bert::repack(others, batch), doctest::Contains("repack: expected 2 sequences of 8 tokens"),
                         Error);
  };
  refused({first[0]});
  refused({first[0], first[0]});
  refused({bert::sequence_of(std::vector{2, 7, 8, 3}, 3), bert::sequence_of(std::vector{2, 7, 8, 3}, 3)});
}
