// eval_rows.jsonl of a model that finds answers. The report is made of it.
#pragma once
#include <cstdint>
#include <string>

#include "bert/tasks/answer_scores.h"

namespace bertrand::tasks {

/// The first line: {"task", "kind": "answers", "rows": the number of questions}. `version_2`: there may be no answer.
std::string answer_rows_header(bool version_2, std::int64_t questions);
/// A line for each question: "id"; "text", the question; "text_pair", its context; "label", the true answers;
/// "prediction"; and "exact" and "f1", 0 to 1, as the official script counts them.
std::string answer_row(bool version_2, const SquadParagraph& paragraph, const SquadQuestion& question,
                       const std::string& predicted);

}  // namespace bertrand::tasks
