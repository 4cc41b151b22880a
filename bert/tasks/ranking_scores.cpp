#include "bert/tasks/ranking_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bertrand::tasks {

RankingScores& RankingScores::operator+=(const RankingScores& other) {
  map += other.map, rprec += other.rprec, mrr += other.mrr, mrr_at_10 += other.mrr_at_10, ndcg += other.ndcg;
  return *this;
}

RankingScores RankingScores::divided_by(double count) const {
  return {map / count, rprec / count, mrr / count, mrr_at_10 / count, ndcg / count};
}

RankingScores score_ranking(const Passages& relevant, std::span<const std::string> ranked) {
  RankingScores scores;
  if (relevant.empty()) return scores;
  const auto wanted = static_cast<double>(relevant.size());
  std::set<std::string_view> seen;
  double hits = 0, gain = 0, most = 0, among_first = 0;
  std::size_t first = ranked.size();  // the place of the first relevant one
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const double rank = static_cast<double>(i) + 1;
    if (!relevant.contains(ranked[i])) continue;
    gain += 1 / std::log2(rank + 1);
    first = std::min(first, i);
    if (!seen.insert(ranked[i]).second) continue;
    scores.map += ++hits / rank;
    if (i < relevant.size()) ++among_first;
  }
  for (std::size_t i = 0; i < relevant.size(); ++i) most += 1 / std::log2(static_cast<double>(i) + 2);
  scores.map /= wanted;
  scores.rprec = among_first / wanted;
  scores.mrr = first < ranked.size() ? 1 / (static_cast<double>(first) + 1) : 0;
  scores.mrr_at_10 = first < 10 ? scores.mrr : 0;
  scores.ndcg = gain / std::max(0.3, most);
  return scores;
}

void RepeatedPassages::add(const std::string& query, std::span<const std::string> passages) {
  std::set<std::string_view> seen;
  for (const std::string& passage : passages)
    if (!seen.insert(passage).second && count_++ == 0) first_ = fmt::format("{:.80} of query {:.80}", passage, query);
}

std::string RepeatedPassages::warning() const {
  if (count_ == 0) return "";
  return fmt::format(
      "passages that come again for their query: {}, the first {}; ndcg counts each of them, as metrics.py does",
      count_, first_);
}

void RankingCounter::add(const std::string& query, std::span<const std::string> ranked) {
  ++queries_;
  const auto found = qrels_.find(query);
  if (found == qrels_.end()) return;
  ++judged_;
  sum_ += score_ranking(found->second, ranked);
}

std::map<std::string, double> RankingCounter::means() const {
  const RankingScores mean = sum_.divided_by(static_cast<double>(queries_));
  return {
      {"map", mean.map}, {"rprec", mean.rprec}, {"mrr", mean.mrr}, {"mrr_at_10", mean.mrr_at_10}, {"ndcg", mean.ndcg}};
}

std::vector<std::string> RankingCounter::warnings() const {
  std::vector<std::string> lines;
  if (judged_ < queries_)
    lines.push_back(
        fmt::format("queries without a relevant passage, which score 0: {} of {}", queries_ - judged_, queries_));
  if (judged_ < std::ssize(qrels_))
    lines.push_back(fmt::format("queries with relevant passages that are not in the run and do not count: {}",
                                std::ssize(qrels_) - judged_));
  return lines;
}

}  // namespace bertrand::tasks
