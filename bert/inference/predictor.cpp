// Queries answered, one or many.
#include "bert/inference/predictor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/error.h"

namespace bertrand::inference {
namespace {

struct SequenceIndex {
  std::size_t query, sequence;  // of the query
};

/// Every sequence of all queries, the longest first.
std::vector<SequenceIndex> by_length(std::span<const Query> queries) {
  std::vector<SequenceIndex> indices;
  for (std::size_t q = 0; q < queries.size(); ++q)
    for (std::size_t s = 0; s < queries[q].sequences.size(); ++s) indices.push_back({q, s});
  std::ranges::stable_sort(indices, std::greater(), [&](const SequenceIndex& index) {
    return queries[index.query].sequences[index.sequence].token_ids.size();
  });
  return indices;
}

}  // namespace

io::Json answer(const Query& query, std::span<const Outputs> outputs) {
  for (const Outputs& of_sequence : outputs)
    for (const float value : of_sequence.values)
      if (!std::isfinite(value))
        fail(Failure::numerics,
             "{}: outputs: expected finite numbers, got {}; hint: --precision f32, or damaged weights", query.where,
             value);
  return query.make_answer(outputs);
}

void run_all(const Predictor& predictor, std::span<Query> queries, std::int64_t max_tokens,
             const std::function<void(std::size_t, std::span<const Outputs>)>& take,
             const std::function<void()>& before_batch) {
  std::vector<std::vector<Outputs>> outputs;  // of each query
  std::vector<std::size_t> missing;           // sequences of each query that were not computed yet
  for (const Query& query : queries) {
    outputs.emplace_back(query.sequences.size());
    missing.push_back(query.sequences.size());
  }
  const std::vector<SequenceIndex> indices = by_length(queries);
  for (std::size_t begin = 0, end = 0; begin < indices.size(); begin = end) {
    before_batch();
    std::vector<bert::Sequence> batch;
    for (std::int64_t tokens = 0; end < indices.size(); ++end) {
      bert::Sequence& next = queries[indices[end].query].sequences[indices[end].sequence];
      tokens += std::ssize(next.token_ids);
      if (tokens > max_tokens && !batch.empty()) break;
      batch.push_back(std::move(next));
    }
    std::vector<Outputs> computed = predictor.run(batch);
    for (std::size_t i = begin; i < end; ++i) {
      const auto [query, sequence] = indices[i];
      outputs[query][sequence] = std::move(computed[i - begin]);
      if (--missing[query] > 0) continue;
      take(query, outputs[query]);
      outputs[query].clear();
    }
  }
}

}  // namespace bertrand::inference
