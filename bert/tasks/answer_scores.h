// SQuAD's official scores of answers: evaluate-v1.1.py (Rajpurkar et al. 2016) and evaluate-v2.0.py (2018). All figures
// are in percent, as the scripts print them, added up in their order.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bert/tasks/squad_file.h"

namespace bertrand::tasks {

/// In lower case, without ASCII punctuation, without the words a, an and the; single spaces between words.
std::string normalized_answer(const std::string& text);

using Answers = std::map<std::string, std::string>;  ///< by the question's id
/// (id, how much better no answer scores), in the file's order, which decides between equal ones.
using NullOdds = std::vector<std::pair<std::string, double>>;

/// One question's scores against the best of its answers.
struct ScoredAnswer {
  double exact = 0, f1 = 0;
  double null_odds = 0;  ///< how much better no answer scores
  bool has_answer = false, answered = false;
};
/// `version_2`: there may be no answer.
ScoredAnswer scored_answer(const SquadQuestion& question, const std::string& predicted, bool version_2);

using AnswerFigures = std::map<std::string, double>;  ///< by the script's names
/// exact_match and f1 of all questions, of which there is one at least.
AnswerFigures squad_figures(std::span<const ScoredAnswer> all);
/// exact, f1 and total; the same with HasAns_ and NoAns_; and best_exact, best_exact_thresh, best_f1 and
/// best_f1_thresh. An answer whose odds are above `threshold` counts as none.
AnswerFigures squad2_figures(std::span<const ScoredAnswer> all, double threshold);

/// Figures, and questions that `predicted` lacks, in the data's order.
struct AnswerScores {
  AnswerFigures figures;
  std::vector<std::string> missing;
};

/// Where questions and odds are from, for messages.
struct SquadScoreFiles {
  std::string data = "data", null_odds = "null odds";
};

/// exact_match and f1 over all questions. A missing question scores 0.
AnswerScores score_squad(const std::vector<SquadParagraph>& data, const Answers& predicted,
                         const SquadScoreFiles& files = {});

/// exact, f1 and total; the same with HasAns_ and NoAns_; and with `null_odds` best_exact, best_exact_thresh, best_f1
/// and best_f1_thresh. With null_odds an answer whose odds are above `threshold` counts as none. Questions that
/// `predicted` lacks do not count.
AnswerScores score_squad2(const std::vector<SquadParagraph>& data, const Answers& predicted,
                          const std::optional<NullOdds>& null_odds, double threshold = 1,
                          const SquadScoreFiles& files = {});

}  // namespace bertrand::tasks
