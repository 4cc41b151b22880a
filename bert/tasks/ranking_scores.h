// How well ranked passages answer their queries: the figures of dl4marco-bert's metrics.py, which BERT's rankers report
// on MSMARCO (Nogueira and Cho 2019).
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace bertrand::tasks {

/// The figures of one query. All are 0 for a query without a relevant passage.
struct RankingScores {
  double map = 0;    ///< average precision: Σ over relevant ranks r of (relevant ones up to r) / r, / relevant ones
  double rprec = 0;  ///< share of the relevant ones among as many first ranks
  double mrr = 0;    ///< 1 / rank of the first relevant one
  double mrr_at_10 = 0;  ///< the same, 0 if that rank is above 10
  double ndcg = 0;       ///< Σ 1 / log2(rank + 1) over the relevant ones / max(0.3, the most that can be)

  RankingScores& operator+=(const RankingScores& other);
  RankingScores divided_by(double count) const;
};

/// The ids of passages.
using Passages = std::set<std::string, std::less<>>;
/// The relevant passages of each query, by the query's id; queries without one are not in it.
using Qrels = std::map<std::string, Passages, std::less<>>;

/// `ranked`: the passages of a query, the best first. One that comes again counts where it comes first; ndcg counts it
/// each time, as metrics.py does, and may be above 1 then.
RankingScores score_ranking(const Passages& relevant, std::span<const std::string> ranked);

/// Counts passages that a query has more than once.
class RepeatedPassages {
 public:
  /// All passages of a query.
  void add(const std::string& query, std::span<const std::string> passages);
  /// What a person should be told; "" if there are none.
  std::string warning() const;

 private:
  std::int64_t count_ = 0;
  std::string first_;
};

/// Sums up the scores of queries. The qrels must outlive it.
class RankingCounter {
 public:
  explicit RankingCounter(const Qrels& qrels) : qrels_(qrels) {}
  /// Counts a query, which must not come twice.
  void add(const std::string& query, std::span<const std::string> ranked);

  std::int64_t queries() const { return queries_; }
  /// The means over the queries: map, rprec, mrr, mrr_at_10, ndcg. Queries without a relevant passage count with 0.
  std::map<std::string, double> means() const;
  /// What a person should be told about queries that only one of qrels and ranking has.
  std::vector<std::string> warnings() const;

 private:
  const Qrels& qrels_;
  RankingScores sum_;
  std::int64_t queries_ = 0, judged_ = 0;
};

}  // namespace bertrand::tasks
