// eval_rows.jsonl, row by row.
#include "bert/tasks/evaluation_rows.h"

#include <algorithm>
#include <bit>

#include "io/json.h"

namespace bertrand::tasks {
namespace {

/// The numbers of the entries that are set.
io::Json numbers_of(std::span<const std::int32_t> flags) {
  io::Json numbers = io::Json::array();
  for (std::size_t j = 0; j < flags.size(); ++j)
    if (flags[j] != 0) numbers.push_back(j);
  return numbers;
}

io::Json header(const Task& task, const LabelSet& labels, std::size_t rows, std::size_t given) {
  io::Json metrics = io::Json::array();
  for (const Metric metric : task.metrics) metrics.push_back(metric_name(metric));
  return {{"task", task.name},
          {"kind", io::name_in(kinds(), task.kind)},
          {"rows", rows},
          {"labels", labels.names()},
          {"positive", task.positive},
          {"metrics", metrics},
          {"given", given}};
}

}  // namespace

void write_evaluation_rows(const Task& task, const LabelSet& labels, const Dataset& dataset,
                           const EncodedDataset& encoded, const Logits& logits,
                           const std::function<void(std::string_view line)>& write, std::size_t most) {
  const std::size_t rows = dataset.examples.size();
  check(logits.rows() == rows, "evaluation rows: expected {} rows of outputs, got {}", rows, logits.rows());
  const bool regression = task.kind == Kind::regression;
  const std::int64_t sequences = encoded.size() / static_cast<std::int64_t>(rows);  // one for each choice
  const std::span<const std::int32_t> targets = encoded.targets.all();
  const std::vector<std::int32_t> decided = regression ? std::vector<std::int32_t>{} : decisions(task.kind, logits);
  const std::size_t width = task.kind == Kind::multi_label ? logits.outputs : 1;
  const std::size_t shown =
      std::min({most, rows, std::max<std::size_t>(1, most * kProbabilitiesOfRow / logits.outputs)});
  write(io::json_text(header(task, labels, shown, rows)) + "\n");
  std::size_t written = 0;
  dataset.examples.for_each([&](std::size_t i, const Example& example) {
    logits.let_go(i);  // for memory alone
    if (written == shown || i != written * rows / shown) return;
    ++written;
    io::Json row{{"id", example.id}, {"text", example.text_a}};
    if (const auto second = example.second_text()) row["text_pair"] = *second;
    const auto first = static_cast<std::int64_t>(i) * sequences;
    row["tokens"] = encoded.begin(first + sequences) - encoded.begin(first);
    if (regression) {
      row["label"] = std::bit_cast<float>(targets[i]);
      row["prediction"] = logits.row(i)[0];
    } else {
      const auto truth = targets.subspan(i * width, width);
      const auto predicted = std::span(decided).subspan(i * width, width);
      row["label"] = task.kind == Kind::multi_label ? numbers_of(truth) : io::Json(truth[0]);
      row["prediction"] = task.kind == Kind::multi_label ? numbers_of(predicted) : io::Json(predicted[0]);
      const std::vector<double> shares = probabilities(task.kind, logits.row(i));
      row["probabilities"] = std::vector<float>(shares.begin(), shares.end());
    }
    write(io::json_text(row) + "\n");
  });
}

}  // namespace bertrand::tasks
