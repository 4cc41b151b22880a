// A typical mistake: each thread adds up its share of the parts, then the shares are added up.
// refused: parts, [234] threads: entry [0-9]+: got
#include "replica_sum/replica_sum.h"

#include <thread>

std::vector<float> replica_sum(const std::vector<std::vector<float>>& parts, int threads) {
  const auto size = static_cast<std::size_t>(threads);
  std::vector<std::vector<float>> shares(size, std::vector<float>(parts[0].size()));
  std::vector<std::jthread> running;
  for (std::size_t thread = 0; thread < size; ++thread)
    running.emplace_back([&, thread] {
      for (std::size_t i = parts.size() * thread / size; i < parts.size() * (thread + 1) / size; ++i)
        for (std::size_t entry = 0; entry < parts[i].size(); ++entry) shares[thread][entry] += parts[i][entry];
    });
  running.clear();
  std::vector<float> sum(parts[0].size());
  for (const auto& share : shares)
    for (std::size_t entry = 0; entry < sum.size(); ++entry) sum[entry] += share[entry];
  return sum;
}
