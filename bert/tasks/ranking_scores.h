// How well ranked passages answer their queries: the figures of dl4marco-bert's metrics.py, which BERT's rankers report
// on MSMARCO (Nogueira and Cho 2019).
#pragma once
#include <set>
#include <span>
#include <string>

namespace bertrand::tasks {

/// Of one query. All are 0 for a query without a relevant passage.
struct RankingScores {
  double map = 0;    ///< average precision: Σ over relevant ranks r of (relevant ones up to r) / r, / relevant ones
  double rprec = 0;  ///< share of the relevant ones among as many first ranks
  double mrr = 0;    ///< 1 / rank of the first relevant one
  double mrr_at_10 = 0;  ///< the same, 0 if that rank is above 10
  double ndcg = 0;       ///< Σ 1 / log2(rank + 1) over the relevant ones / max(0.3, the most that can be)

  RankingScores& operator+=(const RankingScores& other);
  RankingScores divided_by(double count) const;
};

/// `ranked`: the passages of a query, the best first. A passage that comes twice counts once for map.
RankingScores score_ranking(const std::set<std::string, std::less<>>& relevant, std::span<const std::string> ranked);

}  // namespace bertrand::tasks
