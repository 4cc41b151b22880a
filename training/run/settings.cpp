#include "training/run/settings.h"

#include <algorithm>

#include "io/error.h"

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
  settings.optimizer = {.method = optim::Method::adamw_google, .epsilon = -1};
  settings.schedule = {.schedule = optim::Schedule::google, .learning_rate = 1e-4, .warmup_steps = -1};
  return settings;
}

Settings finetuning_defaults() {
  Settings settings;
  settings.epochs = 3;
  settings.optimizer = {.method = optim::Method::adamw, .epsilon = -1};
  settings.schedule = {.schedule = optim::Schedule::linear, .learning_rate = 5e-5, .warmup_steps = -1};
  settings.warmup_ratio = 0.1;
  return settings;
}

void complete(Settings& s) {
  if (s.output.empty() && !s.plan_only) fail(Failure::usage, "--output: expected a directory for the run, got none");
  if (s.resume && s.overwrite) fail(Failure::usage, "--resume, --overwrite: expected one of them, got both");
  if (s.steps == 0 && s.epochs == 0) fail(Failure::usage, "--steps, --epochs: expected one of them, got none");
  if (s.steps > 0) s.epochs = 0;  // --steps replaces a default number of epochs
  if (s.schedule.warmup_steps >= 0 && s.warmup_ratio >= 0) s.warmup_ratio = -1;  // and --warmup-steps a default share
  if (s.schedule.warmup_steps < 0) s.schedule.warmup_steps = 0;
  if (s.micro_batch_size == 0) s.micro_batch_size = std::min<std::int64_t>(s.batch_size, 32);
  s.micro_batch_size = std::min(s.micro_batch_size, s.batch_size);
  if (s.optimizer.epsilon < 0) s.optimizer.epsilon = s.optimizer.method == optim::Method::adamw ? 1e-8 : 1e-6;
}

std::vector<std::pair<std::string, std::string>> Settings::decisive() const {
  const auto text = [](const auto& value) { return fmt::format("{}", value); };
  // All but f64 keep the same masters and moments, so that a run may go on in another of them.
  return {{"--precision", precision == DType::f64 ? "f64" : "f32, tf32, bf16 or f16"},
          {"--batch-size", text(batch_size)},
          {"--micro-batch-size", text(micro_batch_size)},
          {"--steps", text(steps)},
          {"--epochs", text(epochs)},
          {"--optimizer", io::name_in(optimizers(), optimizer.method)},
          {"--learning-rate", text(schedule.learning_rate)},
          {"--weight-decay", text(optimizer.weight_decay)},
          {"--adam-beta1", text(optimizer.beta1)},
          {"--adam-beta2", text(optimizer.beta2)},
          {"--adam-epsilon", text(optimizer.epsilon)},
          {"--clip-norm", text(optimizer.clip_norm)},
          {"--schedule", io::name_in(schedules(), schedule.schedule)},
          {"--warmup-steps", text(schedule.warmup_steps)},
          {"--warmup-ratio", text(warmup_ratio)},
          {"--max-seq-length", text(max_seq_length)},
          {"--seed", text(seed)},
          {"--shuffle", text(shuffle)},
          {"--eval-every", text(eval_every)}};
}

std::string Settings::precision_name() const { return io::name_in(precisions(), precision); }

}  // namespace bertrand::training
