// The flags of the programs that answer with a model, predict and serve.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bert/inference/open.h"
#include "training/run/settings.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bertrand::cli {

/// --task and --max-seq-length.
void task_flags(CLI::App& app, std::optional<inference::Head>& head, inference::Options& options);
CLI::Option* pooling_flag(CLI::App& app, inference::Options& options);
/// --null-score-diff-threshold; none: every question has an answer.
CLI::Option* null_threshold_flag(CLI::App& app, std::optional<double>& threshold);

/// A flag that only some tasks take.
struct OwnFlag {
  const CLI::Option* option;
  std::vector<inference::Head> heads;
};
/// Throws Error(Failure::usage) if a flag was given that none of the tasks takes.
void refuse_flags_of_others(const std::vector<OwnFlag>& flags, const std::set<inference::Head>& tasks);

/// --device, --precision, --threads and --cpu-kernels. `result` is what the last two do not change.
void machine_flags(CLI::App& app, training::Settings& machine, const std::string& result);

}  // namespace bertrand::cli
