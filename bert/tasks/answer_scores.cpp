#include "bert/tasks/answer_scores.h"

#include <algorithm>
#include <functional>
#include <set>

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

/// One question's scores against the best of its answers.
struct Scored {
  std::string id;
  bool has_answer = false, answered = false;
  double exact = 0, f1 = 0;
};

Scored score(const std::string& predicted, const std::vector<Words>& truths, bool version_2) {
  Scored scored;
  const Words words = words_of(predicted);
  for (const Words& truth : truths) {
    scored.exact = std::max(scored.exact, words == truth ? 1.0 : 0.0);
    scored.f1 = std::max(scored.f1, f1_of(words, truth, version_2));
  }
  return scored;
}

std::vector<Words> truths_of(const SquadQuestion& question) {
  std::vector<Words> truths;
  for (const SquadAnswer& answer : question.answers) truths.push_back(words_of(answer.text));
  return truths;
}

void for_questions(const std::vector<SquadParagraph>& data, const std::function<void(const SquadQuestion&)>& work) {
  for (const SquadParagraph& paragraph : data)
    for (const SquadQuestion& question : paragraph.questions) work(question);
}

/// <prefix>exact, <prefix>f1 and <prefix>total of those that `counts` accepts; nothing if there are none.
void add_figures(std::map<std::string, double>& figures, const std::string& prefix, const std::vector<Scored>& all,
                 const std::function<bool(const Scored&)>& counts) {
  double exact = 0, f1 = 0, total = 0;
  for (const Scored& scored : all) {
    if (!counts(scored)) continue;
    exact += scored.exact, f1 += scored.f1, ++total;
  }
  if (total == 0) return;
  figures[prefix + "exact"] = 100.0 * exact / total;
  figures[prefix + "f1"] = 100.0 * f1 / total;
  figures[prefix + "total"] = total;
}

/// The best score that a threshold on the odds can reach, in percent, and that threshold: find_best_thresh of the
/// script.
std::pair<double, double> best_threshold(const std::vector<Scored>& all, double Scored::*figure,
                                         const std::vector<SquadParagraph>& data, NullOdds odds) {
  std::map<std::string, const Scored*> by_id;
  for (const Scored& scored : all) by_id[scored.id] = &scored;
  double now = 0;
  for_questions(data, [&](const SquadQuestion& question) { now += question.answers.empty() ? 1 : 0; });
  double best = now, threshold = 0;
  std::stable_sort(odds.begin(), odds.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  for (const auto& [id, value] : odds) {
    const auto found = by_id.find(id);
    if (found == by_id.end()) continue;
    const Scored& scored = *found->second;
    now += scored.has_answer ? scored.*figure : scored.answered ? -1 : 0;
    if (now <= best) continue;
    best = now;
    threshold = value;
  }
  return {100.0 * best / static_cast<double>(all.size()), threshold};
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

double exact_match(const std::string& predicted, const std::string& truth) {
  return words_of(predicted) == words_of(truth) ? 1 : 0;
}

double answer_f1(const std::string& predicted, const std::string& truth, bool no_answer_counts) {
  return f1_of(words_of(predicted), words_of(truth), no_answer_counts);
}

AnswerScores score_squad(const std::vector<SquadParagraph>& data, const Answers& predicted,
                         const SquadScoreFiles& files) {
  AnswerScores scores;
  double exact = 0, f1 = 0, total = 0;
  for_questions(data, [&](const SquadQuestion& question) {
    ++total;
    const auto found = predicted.find(question.id);
    if (found == predicted.end()) {
      scores.missing.push_back(question.id);
      return;
    }
    if (question.answers.empty())
      fail(Failure::input, "{}: question {}: answers: expected at least one, got none; hint: is it SQuAD 2.0?",
           files.data, question.id);
    const Scored scored = score(found->second, truths_of(question), false);
    exact += scored.exact, f1 += scored.f1;
  });
  if (total == 0) fail(Failure::input, "{}: expected at least one question, got none", files.data);
  scores.figures = {{"exact_match", 100.0 * exact / total}, {"f1", 100.0 * f1 / total}};
  return scores;
}

AnswerScores score_squad2(const std::vector<SquadParagraph>& data, const Answers& predicted,
                          const std::optional<NullOdds>& null_odds, double threshold, const SquadScoreFiles& files) {
  AnswerScores scores;
  std::vector<Scored> raw;
  for_questions(data, [&](const SquadQuestion& question) {
    const auto found = predicted.find(question.id);
    if (found == predicted.end()) {
      scores.missing.push_back(question.id);
      return;
    }
    std::vector<Words> truths = truths_of(question);
    std::erase_if(truths, [](const Words& words) { return words.empty(); });
    if (truths.empty()) truths.emplace_back();  // the only right answer is none
    Scored scored = score(found->second, truths, true);
    scored.id = question.id;
    scored.has_answer = !question.answers.empty();
    scored.answered = !found->second.empty();
    raw.push_back(std::move(scored));
  });
  if (raw.empty())
    fail(Failure::input, "{}: expected at least one question that the predictions answer, got none", files.data);
  std::vector<Scored> at_threshold = raw;
  if (null_odds) {
    const std::map<std::string, double> odds(null_odds->begin(), null_odds->end());
    for (Scored& scored : at_threshold) {
      const auto found = odds.find(scored.id);
      if (found == odds.end())
        fail(Failure::input, "{}: expected a number for question {}, got none", files.null_odds, scored.id);
      if (found->second > threshold) scored.exact = scored.f1 = scored.has_answer ? 0 : 1;
    }
  }
  add_figures(scores.figures, "", at_threshold, [](const Scored&) { return true; });
  add_figures(scores.figures, "HasAns_", at_threshold, [](const Scored& scored) { return scored.has_answer; });
  add_figures(scores.figures, "NoAns_", at_threshold, [](const Scored& scored) { return !scored.has_answer; });
  if (!null_odds) return scores;
  const auto [exact, exact_threshold] = best_threshold(raw, &Scored::exact, data, *null_odds);
  const auto [f1, f1_threshold] = best_threshold(raw, &Scored::f1, data, *null_odds);
  scores.figures["best_exact"] = exact, scores.figures["best_exact_thresh"] = exact_threshold;
  scores.figures["best_f1"] = f1, scores.figures["best_f1_thresh"] = f1_threshold;
  return scores;
}

}  // namespace bertrand::tasks
