// eval_results.txt and eval_results.json: figures and the step of the model that they are of.
#include "training/report/results.h"

#include <fmt/core.h>

#include <map>

#include "io/json.h"
#include "training/run/run_files.h"

namespace bertrand::training {

std::string results_text(const Results& results) {
  std::map<std::string, std::string> texts;
  for (const auto& [key, value] : results.metrics) texts[key] = fmt::format("{}", value);
  if (results.global_step) texts["global_step"] = fmt::format("{}", *results.global_step);
  std::string text;
  for (const auto& [key, value] : texts) text += fmt::format("{} = {}\n", key, value);
  return text;
}

void write_results(io::Files& files, const std::filesystem::path& directory, const Results& results) {
  std::map<std::string, io::Json> all;
  for (const auto& [key, value] : results.metrics) all[key] = value;
  std::map<std::string, std::string> meaning;
  if (results.global_step) all["global_step"] = *results.global_step;
  for (const auto& [key, text] : results.words) {
    if (!key.starts_with("eval_")) all[key] = text;
    else if (all.contains(key)) meaning[key] = text;
  }
  if (!meaning.empty()) all["meaning"] = meaning;
  io::replace_file(files, directory / kResultsText, results_text(results));
  io::replace_file(files, directory / kResultsJson, io::json_text(all, 2) + "\n");
}

}  // namespace bertrand::training
