// BERT on packed tokens: what a batch is, that company changes nothing, and that rows that are not read are not
// computed.
#include <cstdio>
#include <vector>

#include "bert/network/bert.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

void print(const char* name, const Tensor& x) {
  std::printf("%-11s", name);
  for (const auto v : ops::to_host<std::int32_t>(x)) std::printf(" %3d", v);
  std::printf("\n");
}

bert::Sequence sequence(std::vector<std::int32_t> ids) {
  const std::size_t length = ids.size();
  return {.token_ids = std::move(ids), .token_types = std::vector<std::int32_t>(length, 0)};
}

std::vector<float> run(const bert::Bert& model, const bert::PackedBatch& batch, const Tensor& rows = {}) {
  const NoGrad guard;
  return ops::to_host<float>(model(batch, {}, rows).value());
}

const char* yes(bool b) { return b ? "yes" : "no"; }

}  // namespace

int main() {
  const auto backend = open_cpu({.threads = 2});
  const bert::Config config{.vocab_size = 30,
                            .hidden_size = 32,
                            .num_hidden_layers = 2,
                            .num_attention_heads = 4,
                            .intermediate_size = 64,
                            .max_position_embeddings = 16};
  bert::Bert model({}, config);
  const nn::ParameterSet parameters(model, *backend);

  const bert::Sequence first = sequence({1, 12, 13, 14, 2}), second = sequence({1, 20, 2});
  const std::vector<bert::Sequence> alone{first}, company{second, first};
  const bert::PackedBatch small = bert::pack(alone, *backend), batch = bert::pack(company, *backend);
  print("token_ids", batch.token_ids);
  print("positions", batch.positions);
  print("offsets", batch.packing.offsets);
  print("first_rows", batch.first_rows);

  const std::vector<float> by_itself = run(model, small), all = run(model, batch);
  const std::size_t begin = 3 * 32;  // the first sequence lies after the three tokens of the second
  std::printf("the same bits alone and in company: %s\n",
              yes(std::vector<float>(all.begin() + begin, all.end()) == by_itself));

  const std::vector<std::int32_t> wanted{4, 6};
  const std::vector<float> few = run(model, batch, ops::from_host(wanted, {2}, *backend));
  std::vector<float> picked;
  for (const std::int32_t row : wanted)
    picked.insert(picked.end(), all.begin() + row * 32, all.begin() + row * 32 + 32);
  std::printf("two rows of the last layer: %zu numbers, the same bits: %s\n", few.size(), yes(few == picked));

  Dim count = 0;
  for (const auto& segment : parameters.segments()) count += segment.count();
  std::printf("parameters of this model: %lld, in %zu tensors\n", static_cast<long long>(count),
              parameters.segments().size());
}
