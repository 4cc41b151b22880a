#include "bert/objectives/finetuning_task.h"

#include <algorithm>

#include "io/error.h"

namespace bertrand::objectives {

double metric(const training::Metrics& metrics, std::string_view name) {
  const auto found = std::ranges::find(metrics, name, &training::Metric::name);
  if (found == metrics.end()) fail(Failure::bug, "metric {}: expected among the figures, got none", name);
  return found->value;
}

std::vector<tasks::Figure> FineTuningTask::judged_by() const {
  std::vector<tasks::Figure> all = figures();
  tasks::decide_by(all, decisive_);
  return all;
}

void FineTuningTask::decide_by(const std::string& figure) {
  std::vector<tasks::Figure> all = figures();
  tasks::decide_by(all, figure);
  decisive_ = figure;
}

double FineTuningTask::score(const training::Metrics& evaluation) const {
  return tasks::score_of(judged_by(), [&](const std::string& name) { return metric(evaluation, "eval_" + name); });
}

}  // namespace bertrand::objectives
