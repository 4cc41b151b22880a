// What is written of predictions, as text.
#pragma once
#include <functional>
#include <string_view>

#include "bert/tasks/dataset.h"
#include "bert/tasks/metrics.h"

namespace bertrand::tasks {

/// predictions.tsv: a header; then per example its id, the prediction (the label's name, a number, or the names of all
/// labels with a probability of at least one half), a probability per label, the file's label if it has one, for
/// classes the probability of the prediction, and the text or texts. Of a bad row the id stands alone. `write` gets the
/// file part by part.
void write_predictions_tsv(const Task& task, const LabelSet& labels, const Dataset& dataset, const Logits& logits,
                           const std::function<void(std::string_view part)>& write);

}  // namespace bertrand::tasks
