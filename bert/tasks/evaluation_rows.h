// eval_rows.jsonl: what the best model said of each row of the evaluation file. The report is made of it.
#pragma once
#include <string>

#include "bert/tasks/encode.h"
#include "bert/tasks/metrics.h"

namespace bertrand::tasks {

/// The first line is {"task", "kind", "labels", "positive", "metrics"}. Then a line for each example: "id", "text",
/// "text_pair" if there is one, "tokens" (as the model reads them), "label" and "prediction": numbers of labels, lists
/// of them if there may be several, or the number that is learnt; and "probabilities", one for each label.
/// `encoded` are the examples of `dataset`, each of which has a target; `logits` are the outputs for them.
std::string evaluation_rows(const Task& task, const LabelSet& labels, const Dataset& dataset,
                            const EncodedDataset& encoded, const Logits& logits);

}  // namespace bertrand::tasks
