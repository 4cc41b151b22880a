// What the rows of an evaluation show of a model that labels words.
#pragma once
#include <string_view>

#include "bert/report/report.h"
#include "bert/report/rows.h"

namespace bertrand::report {

/// What the page shows of the lines of eval_rows.jsonl of words (bert/tasks/word_rows.h): "kind", "labels", "rows",
/// "intervals" (of resampled sentences), "classes", "confusion", "confused", "lengths", "calibration" and "sentences",
/// those with the most wrong words. Throws as evaluation_of does.
io::Json words_of(std::string_view lines, const Extent& extent, const LetGo& let_go);

}  // namespace bertrand::report
