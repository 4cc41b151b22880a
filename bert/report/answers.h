// What the rows of an evaluation show of a model that finds answers.
#pragma once
#include <string_view>

#include "bert/report/report.h"
#include "bert/report/rows.h"

namespace bertrand::report {

/// What the page shows of the lines of eval_rows.jsonl of answers (bert/tasks/answer_rows.h): "kind", "rows",
/// "intervals" and "wrong", the questions whose answers have the lowest F1. Throws as evaluation_of does.
io::Json answers_of(std::string_view lines, const Extent& extent, const LetGo& let_go);

}  // namespace bertrand::report
