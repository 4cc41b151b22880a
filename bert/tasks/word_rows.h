// eval_rows.jsonl of a model that labels words. The report is made of it.
#pragma once
#include <string>

#include "bert/tasks/token_scores.h"

namespace bertrand::tasks {

/// The first line is {"task", "kind": "words", "labels"}. Then a line for each sentence: "id", its number from 0;
/// "words"; "label" and "prediction", the numbers of their labels; and "probabilities" of those predicted.
std::string word_rows(TokenTask task, const JudgedWords& words, const WordPredictions& predictions);

}  // namespace bertrand::tasks
