// The predictions.tsv of finetune scored, without a model.
#pragma once
#include <string>

#include "bert/tasks/score_files.h"
#include "bert/tasks/task.h"

namespace bertrand::tasks {

/// The metrics of a task of classes or of numbers, as an evaluation has them, and "rows". `predictions` is a
/// predictions.tsv, `data` a table of the task whose rows have the same ids, in the same order. Of classes the table is
/// that of class_report(). Throws Failure::input with file and line for a label that is none of the predicted ones, a
/// row that has no prediction, and other rows.
FileScores score_predictions(const Task& task, const std::string& data, const std::string& predictions);

}  // namespace bertrand::tasks
