#include "bert/tasks/answer_scores.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/paths.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

const std::string kData = paths::shared + "/data/";

bool have_data() {
  if (std::filesystem::exists(kData + "squad")) return true;
  MESSAGE("SKIPPED: no data in " << kData);
  return false;
}

void check_figures(const AnswerScores& scores, const std::map<std::string, double>& expected) {
  CHECK(scores.figures.size() == expected.size());
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(scores.figures.at(name) == value);
  }
}

}  // namespace

TEST_CASE("an answer is compared without case and punctuation and articles") {
  CHECK(normalized_answer("The  Quick, (brown)\tFOX!") == "quick brown fox");
  CHECK(normalized_answer("a.an the") == "aan");  // the full stop goes before the words are looked at
  CHECK(normalized_answer("theory of a man") == "theory of man");
  CHECK(normalized_answer("") == "");
  CHECK(normalized_answer("The") == "");
  CHECK(normalized_answer("İstanbul") == "i̇stanbul");
  CHECK(normalized_answer("“the” a’s") == "“ ” ’s");  // not ASCII, so it stays, and borders a word
  CHECK(normalized_answer("x\u00a0y\u2003z") == "x y z");
}

TEST_CASE("the F1 of two answers counts each common word as often as both have it") {
  const auto f1 = [](const char* predicted, const char* truth, bool version_2) {
    SquadQuestion question;
    question.answers = {{.text = truth}};
    return scored_answer(question, predicted, version_2).f1;
  };
  CHECK(f1("x x y", "x y y", false) == doctest::Approx(2.0 / 3));
  CHECK(f1("x", "y", false) == 0);
  CHECK(f1("", "", false) == 0);
  CHECK(f1("", "the", true) == 1);
  CHECK(f1("x", "", true) == 0);
}

TEST_CASE("a prediction file for SQuAD 1.1 has the scores of the official script") {
  if (!have_data()) return;
  std::ifstream file(kData + "squad/BERT_ensemble_Google_AI_Language.json");
  const Answers predicted = nlohmann::json::parse(file).get<Answers>();
  const AnswerScores scores = score_squad(read_squad(kData + "squad/dev-v1.1.json"), predicted);
  check_figures(scores, {{"exact_match", 86.20624408703878}, {"f1", 92.19557978351145}});
  CHECK(scores.missing.empty());
}

TEST_CASE("predictions for SQuAD 2.0 have the scores of the official script") {
  if (!have_data()) return;
  const auto data = read_squad(kData + "squad/small/dev-v2.json");
  Answers predicted;
  NullOdds odds;
  std::size_t i = 0;
  for (const SquadParagraph& paragraph : data)
    for (const SquadQuestion& question : paragraph.questions) {
      const std::size_t at = i++;
      if (at % 7 == 6) continue;
      const bool answer = !question.answers.empty() && at % 3;
      predicted[question.id] = at % 5 == 0 ? "" : answer ? "The " + question.answers[0].text + "!" : "some other words";
      odds.emplace_back(question.id,
                        (static_cast<double>(37 * at % 101) - 50) / 10 + (question.answers.empty() ? 2.5 : 0));
    }
  check_figures(score_squad2(data, predicted, {}), {{"exact", 42.220828105395235},
                                                    {"f1", 42.281073868275875},
                                                    {"total", 1594.0},
                                                    {"HasAns_exact", 52.42451967063129},
                                                    {"HasAns_f1", 52.51238037148376},
                                                    {"HasAns_total", 1093.0},
                                                    {"NoAns_exact", 19.960079840319363},
                                                    {"NoAns_f1", 19.960079840319363},
                                                    {"NoAns_total", 501.0}});
  const AnswerScores scores = score_squad2(data, predicted, odds);
  check_figures(scores, {{"exact", 44.04015056461731},
                         {"f1", 44.10039632749796},
                         {"total", 1594.0},
                         {"HasAns_exact", 31.473010064043915},
                         {"HasAns_f1", 31.560870764896382},
                         {"HasAns_total", 1093.0},
                         {"NoAns_exact", 71.45708582834331},
                         {"NoAns_f1", 71.45708582834331},
                         {"NoAns_total", 501.0},
                         {"best_exact", 52.19573400250941},
                         {"best_exact_thresh", 5.0},
                         {"best_f1", 52.25597976539005},
                         {"best_f1_thresh", 5.0}});
  CHECK(scores.missing.size() == i - predicted.size());
}

TEST_CASE("a question without odds and data without questions are refused") {
  const std::vector<SquadParagraph> data = {
      {.context = "x", .questions = {{.id = "q", .question = "x?", .answers = {{"x", 0}}, .is_impossible = false}}}};
  CHECK(support::refusal(Failure::input, [&] {
          score_squad2(data, {{"q", "x"}}, NullOdds{});
        }) == "null odds: expected a number for question q, got none");
  CHECK(support::refusal(Failure::input, [] { score_squad({}, {}); }) ==
        "data: expected at least one question, got none");
  const SquadScoreFiles files{.data = "dev.json", .null_odds = "odds.json"};
  CHECK(support::refusal(Failure::input, [&] {
          score_squad2(data, {{"q", "x"}}, NullOdds{}, 1, files);
        }) == "odds.json: expected a number for question q, got none");
  CHECK(support::refusal(Failure::input, [&] { score_squad2(data, {}, {}, 1, files); }) ==
        "dev.json: expected at least one question that the predictions answer, got none");
}

namespace {

/// Questions of this order, each with its answers.
std::vector<SquadParagraph> questions_of(const std::vector<std::pair<std::string, std::vector<SquadAnswer>>>& all) {
  std::vector<SquadParagraph> data(1);
  for (const auto& [id, answers] : all)
    data[0].questions.push_back({.id = id, .question = "?", .answers = answers, .is_impossible = answers.empty()});
  return data;
}

}  // namespace

TEST_CASE("a question without a prediction scores 0 and is named") {
  const auto data = questions_of({{"a", {{"x", 0}}}, {"m", {{"x", 0}}}, {"c", {{"u", 0}, {"y z", 0}}}});
  const AnswerScores scores = score_squad(data, {{"a", "The x."}, {"c", "y"}});
  CHECK(scores.figures.at("exact_match") == 100.0 / 3);
  CHECK(scores.figures.at("f1") == doctest::Approx(100 * (1 + 2.0 / 3) / 3));
  CHECK(scores.missing == std::vector<std::string>{"m"});
}

TEST_CASE("odds above the threshold take an answer away, and the best threshold is the lowest that no other beats") {
  const auto data = questions_of({{"a", {{"x", 0}}}, {"b", {}}, {"c", {{"y z", 0}}}, {"d", {}}});
  const Answers said = {{"a", "x"}, {"b", ""}, {"c", "y"}, {"d", "w"}};
  // The first of equal odds comes first: d, whose answer is wrong, before a. Nobody asked for z.
  const NullOdds odds = {{"z", -9}, {"d", 0.5}, {"a", 0.5}, {"c", 1}, {"b", 2}};
  const AnswerScores scores = score_squad2(data, said, odds, 1);
  const double part = 2.0 / 3;  // of c
  check_figures(scores, {{"exact", 50},
                         {"f1", 100 * (1 + 1 + part + 0) / 4},
                         {"total", 4},
                         {"HasAns_exact", 50},
                         {"HasAns_f1", 100 * (1 + part) / 2},
                         {"HasAns_total", 2},
                         {"NoAns_exact", 50},
                         {"NoAns_f1", 50},
                         {"NoAns_total", 2},
                         {"best_exact", 50},  // with no answer at all
                         {"best_exact_thresh", 0},
                         {"best_f1", 100 * (2 + part) / 4},
                         {"best_f1_thresh", 1}});
}

TEST_CASE("figures of questions that have an answer, or none, are left out where there is no such question") {
  const AnswerScores all = score_squad2(questions_of({{"a", {{"x", 0}}}}), {{"a", "x"}}, {});
  check_figures(
      all, {{"exact", 100}, {"f1", 100}, {"total", 1}, {"HasAns_exact", 100}, {"HasAns_f1", 100}, {"HasAns_total", 1}});
  const AnswerScores none = score_squad2(questions_of({{"b", {}}}), {{"b", "x"}}, {});
  check_figures(none, {{"exact", 0}, {"f1", 0}, {"total", 1}, {"NoAns_exact", 0}, {"NoAns_f1", 0}, {"NoAns_total", 1}});
}

TEST_CASE("in version 1 two answers without a word are the same and have no F1, as in the official script") {
  check_figures(score_squad(questions_of({{"a", {{"The", 0}}}}), {{"a", "an"}}), {{"exact_match", 100}, {"f1", 0}});
}
