// eval_rows.jsonl of a model that finds answers. The report is made of it.
#pragma once
#include <functional>
#include <string_view>
#include <vector>

#include "bert/tasks/answer_scores.h"

namespace bertrand::tasks {

/// The first line is {"task", "kind": "answers"}. Then a line for each question: "id"; "text", the question;
/// "text_pair", its context; "label", the true answers; "prediction"; and "exact" and "f1", 0 to 1, as the official
/// script counts them. A question that `predicted` lacks is answered by nothing. `version_2`: there may be no answer.
/// `write` gets the lines.
void write_answer_rows(bool version_2, const std::vector<SquadParagraph>& data, const Answers& predicted,
                       const std::function<void(std::string_view line)>& write);

}  // namespace bertrand::tasks
