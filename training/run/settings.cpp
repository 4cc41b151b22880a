#include "training/run/settings.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>

#include "distributed/processes.h"
#include "io/error.h"
#include "io/file_names.h"
#include "io/units.h"
#include "training/step/step.h"

namespace bertrand::training {

const io::Choices<optim::Method>& optimizers() {
  static const io::Choices<optim::Method> choices{{"adamw", optim::Method::adamw},
                                                  {"adamw-google", optim::Method::adamw_google},
                                                  {"lamb", optim::Method::lamb},
                                                  {"lamb-decayed", optim::Method::lamb_decayed}};
  return choices;
}

const io::Choices<optim::Schedule>& schedules() {
  static const io::Choices<optim::Schedule> choices{{"google", optim::Schedule::google},
                                                    {"linear", optim::Schedule::linear},
                                                    {"polynomial", optim::Schedule::polynomial},
                                                    {"cosine", optim::Schedule::cosine},
                                                    {"constant", optim::Schedule::constant}};
  return choices;
}

const io::Choices<Precision>& precisions() {
  static const io::Choices<Precision> choices{{"f32", {DType::f32}},
                                              {"tf32", {.dtype = DType::f32, .tf32 = true}},
                                              {"bf16", {DType::bf16}},
                                              {"f16", {DType::f16}},
                                              {"f64", {DType::f64}}};
  return choices;
}

Settings pretraining_defaults() {
  Settings settings;
  settings.optimizer.method = optim::Method::adamw_google;
  settings.schedule = {.schedule = optim::Schedule::google, .learning_rate = 1e-4};
  return settings;
}

Settings finetuning_defaults() {
  Settings settings;
  settings.epochs = 3;
  settings.optimizer.method = optim::Method::adamw;
  settings.schedule = {.schedule = optim::Schedule::linear, .learning_rate = 5e-5};
  settings.warmup_ratio = 0.1;
  return settings;
}

namespace {

/// --plan and what else stands in place of a run.
void complete_rehearsal(Settings& s) {
  std::vector<std::string> given;
  for (const auto& [flag, is_given] :
       {std::pair("--plan", s.plan_only), std::pair("--validate-only", s.validate_only),
        std::pair("--dry-run", s.dry_run), std::pair("--overfit-batch", s.overfit_batch)})
    if (is_given) given.emplace_back(flag);
  if (given.size() > 1) fail(Failure::usage, "{}: expected one of them, got {}", fmt::join(given, ", "), given.size());
  if (s.resume && !given.empty() && !s.plan_only)
    fail(Failure::usage, "{}: expected without --resume, got both; hint: it looks at a run that is to begin",
         given.front());
  constexpr std::int64_t kSteps = 100;
  if (!s.steps && (s.overfit_batch || (s.validate_only && !s.epochs))) s.steps = kSteps;
  if (!s.overfit_batch) return;
  s.schedule.schedule = optim::Schedule::constant;
  s.warmup_steps = 0;
}

}  // namespace

void complete(Settings& s) {
  complete_rehearsal(s);
  if (!s.memory.empty()) s.most_memory = io::parse_bytes("--memory", s.memory);
  if (s.output.empty() && !s.is_rehearsal())
    fail(Failure::usage, "--output: expected a directory for the run, got none");
  if (s.resume && s.overwrite) fail(Failure::usage, "--resume, --overwrite: expected one of them, got both");
  if (!s.steps && !s.epochs) fail(Failure::usage, "--steps, --epochs: expected one of them, got none");
  if (s.steps) s.epochs.reset();               // --steps replaces a default number of epochs
  if (s.warmup_steps) s.warmup_ratio.reset();  // and --warmup-steps a default share
  s.schedule.warmup_steps = s.warmup_steps.value_or(0);
  if (s.micro_batch_size && *s.micro_batch_size > s.batch_size && is_given("--micro-batch-size", s.command))
    distributed::warn(fmt::format("--micro-batch-size: a step has {} examples, so {} are never computed at once",
                                  s.batch_size, *s.micro_batch_size));
  s.micro_batch_size = std::min(s.micro_batch_size.value_or(kUsualMicroBatch), s.batch_size);
  s.optimizer.epsilon = s.adam_epsilon.value_or(s.optimizer.method == optim::Method::adamw ? 1e-8 : 1e-6);
}

/// A rehearsal has no file in --output itself: it may have made that, and removes it at the end. On NFS an open file
/// without a name would still be in it then.
std::filesystem::path Settings::spill_directory() const {
  if (!is_rehearsal()) return output;
  std::filesystem::path directory = io::without_slash(output).parent_path();
  std::error_code ignored;
  while (!directory.empty() && !std::filesystem::is_directory(directory, ignored)) directory = directory.parent_path();
  if (directory.empty()) directory = ".";
  return ::access(directory.c_str(), W_OK | X_OK) == 0 ? directory : std::filesystem::path();
}

std::string Settings::precision_name() const { return io::name_in(precisions(), precision); }

std::int64_t Settings::sequence_length(std::int64_t positions, std::int64_t usual) const {
  if (max_seq_length && *max_seq_length > positions)
    fail(Failure::usage, "--max-seq-length: expected at most {}, the model's positions, got {}", positions,
         *max_seq_length);
  return max_seq_length.value_or(std::min(usual, positions));
}

}  // namespace bertrand::training
