#include "apps/cli/training_flags.h"

#include "apps/cli/flags.h"

namespace bertrand::cli {
namespace {

using training::Settings;

void add_run_flags(CLI::App& app, Settings& s) {
  app.add_option("--output", s.output,
                 "run directory, needed but for --plan; refused if it holds a run, unless --resume or --overwrite")
      ->type_name("DIR");
  app.add_flag("--resume", s.resume, "go on from the newest checkpoint in --output that verifies");
  app.add_flag("--overwrite", s.overwrite, "remove the run that --output holds");
  app.add_flag("--plan", s.plan_only, "print the plan and the predicted memory, and exit");
  app.add_option("--profile", s.profile, "print a table per op, and write a Chrome trace to this file")
      ->type_name("FILE");
  app.add_option("--device", s.device, "cpu, cuda, or a list: cuda:0,cuda:1 (default cpu)")->type_name("NAMES");
  number_flag(app, "--replicas", s.replicas, {1, 1024}, "replicas on the device, of each process");
  number_flag(app, "--threads", s.threads, {1, 4096}, "cores of each process; does not change the result",
              "every core that this process may use, or its share of them");
  number_flag(app, "--collective-timeout", s.collective_timeout, {1.0, 1e6},
              "seconds that the processes of a run wait for one of them, which may be saving, before they give up");
  app.add_option(
         "--cpu-kernels", s.cpu_kernels,
         "auto, x86-64-v3, x86-64-v4 or x86-64-v4-bf16: the kernel set; does not change the result (default auto)")
      ->type_name("NAME");
  choice_flag(app, "--precision", s.precision, training::precisions(),
              "type of parameters and activations; masters and moments are f32, of f64 f64");
  app.add_flag("--measured-products", s.measured_products,
               "on cuda: try a few algorithms for each matrix product and take the fastest; another run may differ in "
               "its last bits");
}

void add_length_flags(CLI::App& app, Settings& s) {
  number_flag(app, "--batch-size", s.batch_size, {1, 1 << 24}, "examples per optimizer step, over all replicas");
  number_flag(app, "--micro-batch-size", s.micro_batch_size, {1, 1 << 24},
              "examples whose gradient is computed at once; with --batch-size it decides result and memory",
              "the batch size, at most 32");
  const std::string epochs = s.epochs > 0 ? fmt::format("{:g}", s.epochs) : "none: --steps or --epochs is needed";
  auto* by_steps = number_flag(app, "--steps", s.steps, {1, 1'000'000'000}, "length in optimizer steps", "as --epochs");
  auto* by_epochs = number_flag(app, "--epochs", s.epochs, {1e-6, 1e6}, "length in passes over the data", epochs);
  by_steps->excludes(by_epochs);
  number_flag(app, "--max-seq-length", s.max_seq_length, {5, 1 << 20},
              "tokens of an example made from text; longer is cut");
  number_flag(app, "--seed", s.seed, {0}, "number that every random choice follows from");
  app.add_flag("--shuffle,!--no-shuffle", s.shuffle,
               "draw a new order of the examples every epoch (default); --no-shuffle: file order");
}

void add_optimizer_flags(CLI::App& app, Settings& s) {
  choice_flag(app, "--optimizer", s.optimizer.method, training::optimizers(), "rule by which parameters move");
  number_flag(app, "--learning-rate", s.schedule.learning_rate, {0.0, 1e6}, "highest rate of the schedule");
  number_flag(app, "--weight-decay", s.optimizer.weight_decay, {0.0, 1e6}, "decoupled; none on biases and LayerNorm");
  number_flag(app, "--adam-beta1", s.optimizer.beta1, {0.0, 0.9999999}, "decay of the first moment");
  number_flag(app, "--adam-beta2", s.optimizer.beta2, {0.0, 0.9999999}, "decay of the second moment");
  number_flag(app, "--adam-epsilon", s.optimizer.epsilon, {1e-30, 1.0}, "added to the root of the second moment",
              "1e-06, for adamw 1e-08");
  number_flag(app, "--clip-norm", s.optimizer.clip_norm, {0.0, 1e30},
              "largest norm of all gradients together; 0 is off");
  choice_flag(app, "--schedule", s.schedule.schedule, training::schedules(),
              "course of the learning rate, with warm-up");
  auto* steps = number_flag(app, "--warmup-steps", s.schedule.warmup_steps, {0}, "steps of linear warm-up",
                            s.warmup_ratio < 0 ? "0" : "as --warmup-ratio");
  auto* ratio = number_flag(app, "--warmup-ratio", s.warmup_ratio, {0.0, 1.0}, "warm-up as a share of all steps",
                            s.warmup_ratio < 0 ? "as --warmup-steps" : "");
  steps->excludes(ratio);
}

void add_interval_flags(CLI::App& app, Settings& s) {
  number_flag(app, "--log-every", s.log_every, {1}, "steps between lines of metrics");
  number_flag(app, "--eval-every", s.eval_every, {1}, "steps between evaluations", "the end of every epoch");
  number_flag(app, "--save-every", s.save_every, {1}, "steps between checkpoints");
  number_flag(app, "--keep", s.keep, {1, 1 << 20}, "checkpoints kept; older ones are removed");
}

}  // namespace

void add_common_flags(CLI::App& app, Settings& settings) {
  add_run_flags(app, settings);
  set_heading(app, "run");
  add_length_flags(app, settings);
  set_heading(app, "length and batches");
  add_optimizer_flags(app, settings);
  set_heading(app, "optimizer");
  add_interval_flags(app, settings);
  set_heading(app, "logs and checkpoints");
}

}  // namespace bertrand::cli
