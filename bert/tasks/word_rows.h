// eval_rows.jsonl of a model that labels words. The report is made of it.
#pragma once
#include <functional>
#include <string_view>

#include "bert/tasks/token_scores.h"

namespace bertrand::tasks {

/// The first line is {"task", "kind": "words", "rows", "labels"}. Then a line for each of "rows" sentences: "id", its
/// number from 0; "words"; "label" and "prediction", the numbers of their labels; and "probabilities" of those
/// predicted. `write` gets the lines.
void write_word_rows(TokenTask task, const JudgedWords& words, const WordPredictions& predictions,
                     const std::function<void(std::string_view line)>& write);

}  // namespace bertrand::tasks
