// eval_rows.jsonl, row by row.
#include "bert/tasks/evaluation_rows.h"

#include <cmath>

#include "io/json.h"

namespace bertrand::tasks {
namespace {

std::vector<float> probabilities(Kind kind, std::span<const float> row) {
  if (kind == Kind::classification) {
    const std::vector<double> shares = softmax(row);
    return {shares.begin(), shares.end()};
  }
  std::vector<float> each;
  for (const float x : row) each.push_back(static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x)))));
  return each;
}

/// The numbers of the entries that are set.
io::Json numbers_of(std::span<const std::int32_t> flags) {
  io::Json numbers = io::Json::array();
  for (std::size_t j = 0; j < flags.size(); ++j)
    if (flags[j] != 0) numbers.push_back(j);
  return numbers;
}

io::Json header(const Task& task, const LabelSet& labels) {
  io::Json metrics = io::Json::array();
  for (const Metric metric : task.metrics) metrics.push_back(metric_name(metric));
  return {{"task", task.name},
          {"kind", kind_name(task.kind)},
          {"labels", labels.names()},
          {"positive", task.positive},
          {"metrics", metrics}};
}

}  // namespace

std::string evaluation_rows(const Task& task, const LabelSet& labels, const Dataset& dataset,
                            const EncodedDataset& encoded, const Logits& logits) {
  check(logits.rows() == dataset.examples.size(), "evaluation rows: expected {} rows of outputs, got {}",
        dataset.examples.size(), logits.rows());
  const bool regression = task.kind == Kind::regression;
  const Decisions all = regression ? Decisions{} : decisions(task.kind, logits, dataset.examples);
  const std::size_t width = task.kind == Kind::multi_label ? logits.outputs : 1;
  std::string text = io::json_text(header(task, labels)) + "\n";
  for (std::size_t i = 0; i < dataset.examples.size(); ++i) {
    const Example& example = dataset.examples[i];
    io::Json row{{"id", example.id}, {"text", example.text_a}};
    if (example.text_b) row["text_pair"] = *example.text_b;
    row["tokens"] = encoded.tokens(static_cast<std::int64_t>(i));
    if (regression) {
      row["label"] = std::get<float>(*example.target);
      row["prediction"] = logits.row(i)[0];
    } else {
      const auto truth = std::span(all.truth).subspan(i * width, width);
      const auto predicted = std::span(all.predicted).subspan(i * width, width);
      row["label"] = task.kind == Kind::multi_label ? numbers_of(truth) : io::Json(truth[0]);
      row["prediction"] = task.kind == Kind::multi_label ? numbers_of(predicted) : io::Json(predicted[0]);
      row["probabilities"] = probabilities(task.kind, logits.row(i));
    }
    text += io::json_text(row) + "\n";
  }
  return text;
}

}  // namespace bertrand::tasks
