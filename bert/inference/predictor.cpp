// Queries answered, one or many.
#include "bert/inference/predictor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "io/error.h"

namespace bertrand::inference {
namespace {

struct Place {
  std::size_t query, sequence;
};

/// Every sequence of all queries, the longest first.
std::vector<Place> by_length(std::span<const Query> queries) {
  std::vector<Place> places;
  for (std::size_t q = 0; q < queries.size(); ++q)
    for (std::size_t s = 0; s < queries[q].sequences.size(); ++s) places.push_back({q, s});
  std::ranges::stable_sort(places, std::greater(), [&](const Place& place) {
    return queries[place.query].sequences[place.sequence].token_ids.size();
  });
  return places;
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
  const std::vector<Place> places = by_length(queries);
  for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
    before_batch();
    std::vector<bert::Sequence> batch;
    for (std::int64_t tokens = 0; end < places.size(); ++end) {
      bert::Sequence& next = queries[places[end].query].sequences[places[end].sequence];
      tokens += std::ssize(next.token_ids);
      if (tokens > max_tokens && !batch.empty()) break;
      batch.push_back(std::move(next));
    }
    std::vector<Outputs> computed = predictor.run(batch);
    for (std::size_t i = begin; i < end; ++i) {
      const auto [query, sequence] = places[i];
      outputs[query][sequence] = std::move(computed[i - begin]);
      if (--missing[query] > 0) continue;
      take(query, outputs[query]);
      outputs[query].clear();
    }
  }
}

}  // namespace bertrand::inference
