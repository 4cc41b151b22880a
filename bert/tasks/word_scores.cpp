#include "bert/tasks/word_scores.h"

#include <fmt/format.h>

#include <algorithm>

#include "bert/tasks/entity_report.h"
#include "bert/tasks/labels.h"

namespace bertrand::tasks {
namespace {

void add_figures(std::map<std::string, double>& figures, const std::string& prefix, const ClassFigures& of) {
  figures[prefix + "precision"] = of.precision;
  figures[prefix + "recall"] = of.recall;
  figures[prefix + "f1"] = of.f1;
  figures[prefix + "support"] = static_cast<double>(of.support);
}

/// What begins the names of a type's figures. Those of the means begin with macro_ and weighted_, so a type that is
/// called so has a type_ before it, and one that is called type_macro one more.
std::string prefix_of(const std::string& type) {
  constexpr std::string_view kMore = "type_";
  std::string_view name = type;
  while (name.starts_with(kMore)) name.remove_prefix(kMore.size());
  return fmt::format("{}{}_", name == "macro" || name == "weighted" ? kMore : "", type);
}

}  // namespace

void WordScores::add(const std::vector<std::string>& truth, const std::vector<std::string>& predicted) {
  if (task_ == TokenTask::ner) {
    entities_.add(truth, predicted);
    const auto other =
        std::ranges::find_if(truth, [](const std::string& label) { return label != "O" && !is_entity_tag(label); });
    if (other_.empty() && other != truth.end()) other_ = *other;
    return;
  }
  for (std::size_t w = 0; w < truth.size(); ++w) {
    truth_.push_back(number_of(truth[w]));
    predicted_.push_back(number_of(predicted[w]));
  }
}

FileScores WordScores::scores() const { return task_ == TokenTask::ner ? of_entities() : of_labels(); }

FileScores WordScores::of_entities() const {
  const EntityScores scores = entities_.scores();
  FileScores result{.figures = {{"accuracy", scores.accuracy}, {"words", static_cast<double>(scores.words)}},
                    .warnings = {},
                    .table = entity_table(scores)};
  add_figures(result.figures, "", scores.micro);
  add_figures(result.figures, "macro_", scores.macro);
  add_figures(result.figures, "weighted_", scores.weighted);
  for (const auto& [type, figures] : scores.types) add_figures(result.figures, prefix_of(type), figures);
  const std::int64_t illegal = scores.illegal.sum();
  result.figures["illegal_tags"] = static_cast<double>(illegal);
  if (!other_.empty()) result.warnings.push_back(fmt::format("true tags: {}", text_of_no_entity_tag(other_)));
  if (illegal > 0)
    result.warnings.push_back(fmt::format("predicted tags that continue no entity of their type: {}, most often {}",
                                          illegal, scores.illegal.most_frequent()));
  return result;
}

FileScores WordScores::of_labels() const {
  std::vector<std::string> in_order(numbers_.size());
  for (const auto& [label, number] : numbers_) in_order[static_cast<std::size_t>(number)] = label;
  const LabelSet names = LabelSet::sorted(in_order);
  const auto sorted = [&](std::vector<std::int32_t> numbers) {
    for (std::int32_t& number : numbers) number = *names.find(in_order[static_cast<std::size_t>(number)]);
    return numbers;
  };
  const std::vector<std::int32_t> truth = sorted(truth_), predicted = sorted(predicted_);
  const SentenceList none;  // which entities alone need
  const JudgedWords words{.list = none, .names = names, .truth = truth, .predicted = predicted};
  FileScores result{.figures = {}, .warnings = {}, .table = token_report(task_, words)};
  constexpr std::string_view kOfEvaluation = "eval_";
  for (const auto& [name, value] : token_figures(task_, words))
    result.figures[name.substr(kOfEvaluation.size())] = value;
  result.figures["words"] = static_cast<double>(truth_.size());
  return result;
}

std::int32_t WordScores::number_of(const std::string& label) {
  return numbers_.try_emplace(label, static_cast<std::int32_t>(numbers_.size())).first->second;
}

}  // namespace bertrand::tasks
