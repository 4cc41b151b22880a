// eval_rows.jsonl: what the best model said of each row of the evaluation file. The report is made of it.
#pragma once
#include <functional>
#include <string_view>

#include "bert/tasks/encode.h"
#include "bert/tasks/metrics.h"

namespace bertrand::tasks {

/// The file, in the directory of a run. Tasks of words and of answers have theirs (word_rows.h, answer_rows.h).
inline constexpr const char* kEvaluationRows = "eval_rows.jsonl";

/// What the file may have of each row on the average; of many classes it would have gigabytes.
constexpr std::size_t kProbabilitiesOfRow = 100;

/// The first line is {"task", "kind", "rows", "labels", "positive", "metrics", "given"}: "rows" lines follow, and
/// "given" is the number of examples. There is a line for each of them, or for `most` that are evenly spread, if there
/// are more, and for fewer if they would have more than kProbabilitiesOfRow * `most` probabilities: "id", "text",
/// "text_pair" if there is one (the choices, between " | "), "tokens" (as the model reads them), "label" and
/// "prediction": numbers of labels, lists of them if there may be several, or the number that is learnt; and
/// "probabilities", one for each label. `encoded` are the examples of `dataset` with their targets; `logits` are the
/// outputs for them. `write` gets the lines.
void write_evaluation_rows(const Task& task, const LabelSet& labels, const Dataset& dataset,
                           const EncodedDataset& encoded, const Logits& logits,
                           const std::function<void(std::string_view line)>& write, std::size_t most = 100'000);

}  // namespace bertrand::tasks
