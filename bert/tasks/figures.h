// The figures that a task is judged by, in words: what each says, and which decide which model is the best.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/labels.h"
#include "bert/tasks/task.h"
#include "bert/tasks/token_scores.h"

namespace bertrand::tasks {

struct Figure {
  std::string name;              ///< in eval_results.json, without eval_
  std::string meaning;           ///< and how it is averaged
  bool decides = false;          ///< the mean of those that do picks the best model
  bool lower_is_better = false;  ///< as a loss is
};

/// Those of classes, labels or a number. `labels` make the words exact; empty: they are not known yet.
std::vector<Figure> figures_of(const Task& task, const LabelSet& labels = {});
/// Those of labels of words.
std::vector<Figure> figures_of(TokenTask task);
/// Those of answers in texts; `version_2`: some questions have none.
std::vector<Figure> answer_figures(bool version_2);
/// Those of passages that are ranked.
std::vector<Figure> ranking_figures();

/// Makes the figure `name`, with or without eval_, the one that decides; "" changes nothing. Throws Failure::usage,
/// which lists them, if there is none of this name.
void decide_by(std::vector<Figure>& figures, std::string_view name);

/// What the best model has most of: the mean of the figures that decide, of which those count negative that had better
/// be low. `value` gives that of a name, without eval_.
double score_of(const std::vector<Figure>& figures, const std::function<double(const std::string& name)>& value);

/// "f1" or "the mean of accuracy and f1": what decides.
std::string deciding(const std::vector<Figure>& figures);

}  // namespace bertrand::tasks
