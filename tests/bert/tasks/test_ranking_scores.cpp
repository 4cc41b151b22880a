#include "bert/tasks/ranking_scores.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "bert/tasks/score_files.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand::tasks;

namespace {

RankingScores scores_of(const std::set<std::string, std::less<>>& relevant, const std::vector<std::string>& ranked) {
  return score_ranking(relevant, ranked);
}

}  // namespace

TEST_CASE("the first relevant passage at rank r gives 1 / r, within the first ten or not") {
  std::vector<std::string> ranked;
  for (int i = 1; i <= 12; ++i) ranked.push_back(std::to_string(i));
  CHECK(scores_of({"1"}, ranked).mrr == 1);
  CHECK(scores_of({"10"}, ranked).mrr_at_10 == 0.1);
  CHECK(scores_of({"11"}, ranked).mrr == 1.0 / 11);
  CHECK(scores_of({"11"}, ranked).mrr_at_10 == 0);
  CHECK(scores_of({"13"}, ranked).mrr == 0);
}

TEST_CASE("several relevant passages share their query's scores") {
  const RankingScores scores = scores_of({"a", "b", "c"}, {"a", "x", "b", "y"});
  CHECK(scores.map == doctest::Approx((1.0 + 2.0 / 3) / 3));
  CHECK(scores.rprec == doctest::Approx(2.0 / 3));
  CHECK(scores_of({"a"}, {"x", "a"}).rprec == 0);  // the second is one too many
  const double best = 1 + 1 / std::log2(3) + 0.5;
  CHECK(scores.ndcg == doctest::Approx((1 + 0.5) / best));
}

TEST_CASE("a passage that comes twice counts once, where it comes first, but for ndcg, as in metrics.py") {
  const RankingScores scores = scores_of({"a", "b"}, {"a", "a", "x", "b", "b"});
  CHECK(scores.map == (1 + 2.0 / 4) / 2);
  CHECK(scores.rprec == 0.5);
  CHECK(scores.ndcg ==
        doctest::Approx((1 + 1 / std::log2(3) + 1 / std::log2(5) + 1 / std::log2(6)) / (1 + 1 / std::log2(3))));
}

TEST_CASE("a query without a relevant passage scores 0") {
  const RankingScores scores = scores_of({}, {"a"});
  CHECK(scores.map + scores.mrr + scores.mrr_at_10 + scores.ndcg + scores.rprec == 0);
}

TEST_CASE("blank lines of judgements do not count, and a number with more behind it is none") {
  const support::TemporaryDirectory directory;
  const auto file = [&](const std::string& text) {
    support::write_text(directory / "file", text);
    return directory / "file";
  };
  CHECK(read_qrels(file("1 0 a 1\n\n2 0 b 0\n1\t0\tc\t2\n \n")) == Qrels{{"1", {"a", "c"}}});
  CHECK(support::refusal(bertrand::Failure::input, [&] { read_qrels(file("1 0 a 1x\n")); }) != "");
  CHECK(support::refusal(bertrand::Failure::input, [&] { read_qrels(file("1 0 a 99999999999999999999\n")); }) != "");
}
