#include "apps/inference_cli/inference_flags.h"

#include <algorithm>

#include "apps/cli/flags.h"

namespace bertrand::cli {

using inference::Head;

namespace {

std::vector<std::string> names_of(const auto& heads) {
  std::vector<std::string> names;
  for (const Head head : heads) names.push_back(io::name_in(inference::heads(), head));
  return names;
}

}  // namespace

void task_flags(CLI::App& app, std::optional<Head>& head, inference::Options& options) {
  io::Choices<std::optional<Head>> tasks = {{"auto", std::nullopt}};
  for (const auto& [name, known] : inference::heads()) tasks.emplace_back(name, known);
  choice_flag(app, "--task", head, tasks, "what to do; auto: as architectures in config.json say");
  number_flag(app, "--max-seq-length", options.max_seq_length, {5, 1 << 20},
              "tokens that are read at once; of a longer text the end is left out",
              "the model's positions, for answers 384 at most, for classes, choices and embeddings as "
              "sentence_bert_config.json (embeddings alone) or tokenizer_config.json says");
}

CLI::Option* pooling_flag(CLI::App& app, inference::Options& options) {
  return choice_flag(
      app, "--pooling", options.pooling, inference::poolings(),
      "what of a text becomes its embedding: the mean of all tokens, [CLS], or the pooler's output; auto: as "
      "modules.json of sentence-transformers says, with its normalization, else mean");
}

CLI::Option* null_threshold_flag(CLI::App& app, std::optional<double>& threshold) {
  return number_flag(app, "--null-score-diff-threshold", threshold, {-1e30, 1e30},
                     "a question may have no answer: \"\" is the answer if its score is better by more than this "
                     "(default: every question has one)");
}

void refuse_flags_of_others(const std::vector<OwnFlag>& flags, const std::set<Head>& tasks) {
  for (const OwnFlag& flag : flags) {
    const bool is_taken = std::ranges::any_of(flag.heads, [&](Head head) { return tasks.contains(head); });
    if (flag.option->count() == 0 || is_taken) continue;
    fail(Failure::usage, "{}: expected with --task {}, got --task {}", flag.option->get_name(),
         fmt::join(names_of(flag.heads), " or "), fmt::join(names_of(tasks), " and "));
  }
}

void machine_flags(CLI::App& app, training::Settings& machine, const std::string& result) {
  device_flag(app, machine.device);
  choice_flag(app, "--precision", machine.precision, training::precisions(), "type of weights and activations");
  number_flag(
      app, "--threads", machine.threads, {1, 4096},
      fmt::format("cores used; does not change {} (1 to 4096; default every core this process may use)", result));
  kernels_flag(app, machine.cpu_kernels, result);
}

}  // namespace bertrand::cli
