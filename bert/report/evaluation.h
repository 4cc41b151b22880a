// What the rows of an evaluation show beyond its figures.
#pragma once
#include <string_view>

#include "bert/report/report.h"
#include "bert/report/rows.h"

namespace bertrand::report {

/// What the page shows of the lines of eval_rows.jsonl (bert/tasks/evaluation_rows.h): "kind", "labels", "rows",
/// "given" (if these are some of so many), "written" (if the first line tells of more rows), "intervals" (of 95 %, from
/// resampled rows), "lengths", "wrong", and as the kind has them "classes", "confusion", "confused", "calibration",
/// "uncertain", "scatter". Throws Error(Failure::input) naming the line that is damaged, and
/// Error(Failure::interrupted) if a signal asks to leave.
io::Json evaluation_of(std::string_view lines, const Extent& extent, const LetGo& let_go = {});

/// "lengths", "classes", "confusion", "confused" and "calibration" of rows that have classes or labels.
void add_class_figures(const Rows& all, const Extent& extent, io::Json& json);

/// "classes" out of eval_report.tsv, without its means, for tasks without rows; empty if there are none in it.
io::Json classes_of(std::string_view table);

}  // namespace bertrand::report
