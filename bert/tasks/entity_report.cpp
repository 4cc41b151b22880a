#include "bert/tasks/entity_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "bert/tasks/class_report.h"
#include "bert/text/utf8.h"
#include "io/say.h"

namespace bertrand::tasks {
namespace {

std::vector<std::pair<std::string, ClassFigures>> means_of(const EntityScores& scores) {
  return {{"micro avg", scores.micro}, {"macro avg", scores.macro}, {"weighted avg", scores.weighted}};
}

}  // namespace

std::string entity_report(const EntityScores& scores) {
  std::string text = "entity\tprecision\trecall\tf1\tsupport\n";
  for (const auto& [type, figures] : scores.types) text += report_row(type, figures);
  for (const auto& [name, figures] : means_of(scores)) text += report_row(name, figures);
  return text;
}

std::string entity_table(const EntityScores& scores) {
  constexpr std::string_view kLongestMean = "weighted avg";
  auto width = static_cast<std::int64_t>(kLongestMean.size());
  std::vector<std::pair<std::string, ClassFigures>> types;
  for (const auto& [type, figures] : scores.types) {
    types.emplace_back(io::one_line(type), figures);
    width = std::max(width, text::count_code_points(types.back().first));
  }
  const auto row = [&](const std::string& name, const ClassFigures& f) {
    return fmt::format("{:>{}}  {:>9.4f} {:>9.4f} {:>9.4f} {:>9}\n", name, width, f.precision, f.recall, f.f1,
                       f.support);
  };
  std::string text =
      fmt::format("{:>{}}  {:>9} {:>9} {:>9} {:>9}\n\n", "", width, "precision", "recall", "f1-score", "support");
  for (const auto& [type, figures] : types) text += row(type, figures);
  text += '\n';
  for (const auto& [name, figures] : means_of(scores)) text += row(name, figures);
  return text;
}

}  // namespace bertrand::tasks
