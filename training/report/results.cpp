#include "training/report/results.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace bertrand::training {

std::string results_text(const std::map<std::string, double>& results) {
  std::string text;
  for (const auto& [key, value] : results) text += fmt::format("{} = {}\n", key, value);
  return text;
}

void write_results(io::Files& files, const std::filesystem::path& directory,
                   const std::map<std::string, double>& results) {
  io::replace_file(files, directory / "eval_results.txt", results_text(results));
  io::replace_file(files, directory / "eval_results.json", nlohmann::json(results).dump(2) + "\n");
}

}  // namespace bertrand::training
