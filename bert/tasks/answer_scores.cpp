#include "bert/tasks/answer_scores.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "bert/text/python_text.h"
#include "io/error.h"

namespace bertrand::tasks {
namespace {

using Words = std::vector<std::u32string>;

/// string.punctuation
bool is_ascii_punctuation(char32_t c) {
  return (33 <= c && c <= 47) || (58 <= c && c <= 64) || (91 <= c && c <= 96) || (123 <= c && c <= 126);
}

/// re.sub(r'\b(a|an|the)\b', ' ', text)
std::u32string without_articles(const std::u32string& text) {
  std::u32string kept;
  for (auto at = text.begin(); at != text.end();) {
    const auto end = std::find_if_not(at, text.end(), text::is_python_word);
    if (end == at) {
      kept.push_back(*at++);
      continue;
    }
    const std::u32string word(at, end);
    kept += word == U"a" || word == U"an" || word == U"the" ? U" " : word;
    at = end;
  }
  return kept;
}

Words words_of(const std::string& answer) {
  std::u32string text = text::to_code_points(answer);
  text::python_lower(text);
  std::erase_if(text, is_ascii_punctuation);
  return text::python_split(without_articles(text));
}

/// Of two answers without words both get 1 if `no_answer_counts` (version 2).
double f1_of(const Words& predicted, const Words& truth, bool no_answer_counts) {
  if (no_answer_counts && predicted.empty() && truth.empty()) return 1;
  std::map<std::u32string, int> left;
  for (const std::u32string& word : truth) ++left[word];
  double same = 0;
  for (const std::u32string& word : predicted)
    if (const auto found = left.find(word); found != left.end() && found->second-- > 0) ++same;
  if (same == 0) return 0;
  const double precision = same / static_cast<double>(predicted.size()),
               recall = same / static_cast<double>(truth.size());
  return (2 * precision * recall) / (precision + recall);
}

void for_questions(const std::vector<SquadParagraph>& data, const std::function<void(const SquadQuestion&)>& work) {
  for (const SquadParagraph& paragraph : data)
    for (const SquadQuestion& question : paragraph.questions) work(question);
}

/// <prefix>exact, <prefix>f1 and <prefix>total of those that `counts` accepts; nothing if there are none.
void add_figures(AnswerFigures& figures, const std::string& prefix, std::span<const ScoredAnswer> all,
                 const std::function<bool(const ScoredAnswer&)>& counts) {
  double exact = 0, f1 = 0, total = 0;
  for (const ScoredAnswer& scored : all) {
    if (!counts(scored)) continue;
    exact += scored.exact, f1 += scored.f1, ++total;
  }
  if (total == 0) return;
  figures[prefix + "exact"] = 100.0 * exact / total;
  figures[prefix + "f1"] = 100.0 * f1 / total;
  figures[prefix + "total"] = total;
}

AnswerFigures figures_of(std::span<const ScoredAnswer> all) {
  AnswerFigures figures;
  add_figures(figures, "", all, [](const ScoredAnswer&) { return true; });
  add_figures(figures, "HasAns_", all, [](const ScoredAnswer& scored) { return scored.has_answer; });
  add_figures(figures, "NoAns_", all, [](const ScoredAnswer& scored) { return !scored.has_answer; });
  return figures;
}

std::vector<ScoredAnswer> at_threshold(std::span<const ScoredAnswer> all, double threshold) {
  std::vector<ScoredAnswer> kept(all.begin(), all.end());
  for (ScoredAnswer& scored : kept)
    if (scored.null_odds > threshold) scored.exact = scored.f1 = scored.has_answer ? 0 : 1;
  return kept;
}

/// Answers in the order of the odds' file, which decides between equal ones.
using Order = std::vector<const ScoredAnswer*>;

/// The best score that a threshold on the odds can reach, in percent, and that threshold: find_best_thresh of the
/// script. `order` is by rising odds; `unanswered` questions have no answer.
std::pair<double, double> best_threshold(const Order& order, double ScoredAnswer::*figure, double unanswered,
                                         std::size_t questions) {
  double now = unanswered, best = now, threshold = 0;
  for (const ScoredAnswer* scored : order) {
    now += scored->has_answer ? scored->*figure : scored->answered ? -1 : 0;
    if (now <= best) continue;
    best = now;
    threshold = scored->null_odds;
  }
  return {100.0 * best / static_cast<double>(questions), threshold};
}

void add_best(AnswerFigures& figures, Order order, double unanswered, std::size_t questions) {
  std::ranges::stable_sort(order, {}, [](const ScoredAnswer* scored) { return scored->null_odds; });
  for (const auto& [name, figure] : {std::pair("best_exact", &ScoredAnswer::exact), {"best_f1", &ScoredAnswer::f1}}) {
    const auto [best, threshold] = best_threshold(order, figure, unanswered, questions);
    figures[name] = best;
    figures[std::string(name) + "_thresh"] = threshold;
  }
}

}  // namespace

std::string normalized_answer(const std::string& text) {
  std::string joined;
  for (const std::u32string& word : words_of(text)) {
    if (!joined.empty()) joined += ' ';
    joined += text::to_utf8(word);
  }
  return joined;
}

ScoredAnswer scored_answer(const SquadQuestion& question, const std::string& predicted, bool version_2) {
  std::vector<Words> truths;
  for (const SquadAnswer& answer : question.answers) truths.push_back(words_of(answer.text));
  if (version_2) {
    std::erase_if(truths, [](const Words& words) { return words.empty(); });
    if (truths.empty()) truths.emplace_back();  // the only right answer is none
  }
  ScoredAnswer scored{.has_answer = !question.answers.empty(), .answered = !predicted.empty()};
  const Words words = words_of(predicted);
  for (const Words& truth : truths) {
    scored.exact = std::max(scored.exact, words == truth ? 1.0 : 0.0);
    scored.f1 = std::max(scored.f1, f1_of(words, truth, version_2));
  }
  return scored;
}

AnswerFigures squad_figures(std::span<const ScoredAnswer> all) {
  AnswerFigures figures;
  add_figures(figures, "", all, [](const ScoredAnswer&) { return true; });
  return {{"exact_match", figures.at("exact")}, {"f1", figures.at("f1")}};
}

AnswerFigures squad2_figures(std::span<const ScoredAnswer> all, double threshold) {
  AnswerFigures figures = figures_of(at_threshold(all, threshold));
  Order order;
  for (const ScoredAnswer& scored : all) order.push_back(&scored);
  add_best(figures, std::move(order), static_cast<double>(std::ranges::count(all, false, &ScoredAnswer::has_answer)),
           all.size());
  return figures;
}

AnswerScores score_squad(const std::vector<SquadParagraph>& data, const Answers& predicted,
                         const SquadScoreFiles& files) {
  AnswerScores scores;
  std::vector<ScoredAnswer> all;
  for_questions(data, [&](const SquadQuestion& question) {
    all.emplace_back();
    const auto found = predicted.find(question.id);
    if (found == predicted.end()) {
      scores.missing.push_back(question.id);
      return;
    }
    if (question.answers.empty())
      fail(Failure::input, "{}: question {}: answers: expected at least one, got none; hint: is it SQuAD 2.0?",
           files.data, question.id);
    all.back() = scored_answer(question, found->second, false);
  });
  if (all.empty()) fail(Failure::input, "{}: expected at least one question, got none", files.data);
  scores.figures = squad_figures(all);
  return scores;
}

AnswerScores score_squad2(const std::vector<SquadParagraph>& data, const Answers& predicted,
                          const std::optional<NullOdds>& null_odds, double threshold, const SquadScoreFiles& files) {
  AnswerScores scores;
  std::vector<ScoredAnswer> all;
  std::vector<std::string> ids;
  double unanswered = 0;
  for_questions(data, [&](const SquadQuestion& question) {
    unanswered += question.answers.empty() ? 1 : 0;
    const auto found = predicted.find(question.id);
    if (found == predicted.end()) {
      scores.missing.push_back(question.id);
      return;
    }
    all.push_back(scored_answer(question, found->second, true));
    ids.push_back(question.id);
  });
  if (all.empty())
    fail(Failure::input, "{}: expected at least one question that the predictions answer, got none", files.data);
  if (!null_odds) {
    scores.figures = figures_of(all);
    return scores;
  }
  const std::map<std::string, double> odds(null_odds->begin(), null_odds->end());
  std::map<std::string, const ScoredAnswer*> by_id;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto found = odds.find(ids[i]);
    if (found == odds.end())
      fail(Failure::input, "{}: expected a number for question {}, got none", files.null_odds, ids[i]);
    all[i].null_odds = found->second;
    by_id[ids[i]] = &all[i];
  }
  Order order;
  for (const auto& [id, value] : *null_odds)
    if (const auto found = by_id.find(id); found != by_id.end()) order.push_back(found->second);
  scores.figures = figures_of(at_threshold(all, threshold));
  add_best(scores.figures, std::move(order), unanswered, all.size());
  return scores;
}

}  // namespace bertrand::tasks
