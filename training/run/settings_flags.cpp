// The flags that every training program has, each with its role, range and default.
#include "tensor/backends.h"
#include "training/run/settings.h"
#include "training/step/step.h"

namespace bertrand::training {
namespace {

using enum Role;

void add_run_flags(FlagTable& table, Settings& s) {
  table.heading("run");
  table.path({.name = "--output",
              .help = "run directory, needed but for what writes nothing, as --plan; refused if it holds a run, unless "
                      "--resume or --overwrite",
              .role = recorded,
              .type = "DIR"},
             s.output);
  table.toggle({"--resume",
                "go on from the newest checkpoint in --output that verifies, with the flags that the run was begun "
                "with; the --steps or --epochs that it had may be raised",
                command},
               s.resume);
  table.toggle({"--overwrite", "remove the run that --output holds", command}, s.overwrite);
  table.toggle({"--plan", "print the plan and the predicted memory, and exit", command}, s.plan_only);
  table.toggle(
      {"--validate-only", "read settings and data, say what is wrong with them, row by row, and exit", command},
      s.validate_only);
  table.toggle({"--dry-run",
                "make the model, a step of the longest examples and an evaluation, say what they took, write nothing, "
                "and exit",
                command},
               s.dry_run);
  table.toggle({"--overfit-batch",
                "train on the first batch alone for --steps (default 100), say whether it is learnt, write nothing, "
                "and exit; exit code 6 if its loss does not fall",
                command},
               s.overfit_batch);
  table.toggle(
      {"--quiet", "print no plan, no progress and no evaluation of a training; files, warnings and results stay",
       command},
      s.quiet);
  static const io::Choices<bool> formats{{"text", false}, {"jsonl", true}};
  table.choice({"--log-format", "lines for people, or a JSON object a line, on standard output", recorded},
               s.json_lines, formats);
  table.path({"--profile", "print a table per op, and write a Chrome trace to this file"}, s.profile);
}

void add_device_flags(FlagTable& table, Settings& s) {
  table.text({"--device", "cpu, cuda, or a list: cuda:0,cuda:1 (default cpu)", recorded, "", "NAMES", {"cpu", "cuda"}},
             s.device);
  table.text({"--memory",
              "most that the run may take of the device's memory, of the host's on cpu: 8GiB, 500MB; a plan that takes "
              "more is refused with the micro-batch that fits (default what is there)",
              recorded, "", "BYTES"},
             s.memory);
  table.number({"--replicas", "replicas on the device, of each process", recorded}, s.replicas, {1, 1024});
  table.number({"--threads", "cores of each process; does not change the result", local,
                "every core that this process may use, or its share of them"},
               s.threads, {1, 4096}, "");
  table.number(
      {"--collective-timeout",
       "seconds that the processes of a run wait for one of them, which may be saving, before they give up", agreed},
      s.collective_timeout, {1.0, 1e6});
  table.text(
      {"--cpu-kernels",
       fmt::format("kernel set; does not change the result ({}; default auto)", fmt::join(cpu_kernel_names(), ", ")),
       recorded, "", "", cpu_kernel_names()},
      s.cpu_kernels);
  table.choice({"--precision", "type of parameters and activations; masters and moments are f32, of f64 f64", decisive},
               s.precision, precisions());
  table.toggle({"--measured-products",
                "on cuda: try a few algorithms for each matrix product and take the fastest; another run may differ in "
                "its last bits",
                agreed},
               s.measured_products);
}

constexpr const char* kLength = "length and batches";

void add_length_flags(FlagTable& table, Settings& s) {
  table.heading(kLength);
  table.number({"--batch-size", "examples per optimizer step, over all replicas", decisive}, s.batch_size,
               {1, 1 << 24});
  table.number({"--micro-batch-size",
                "examples whose gradient is computed at once; with --batch-size it decides result and memory", decisive,
                fmt::format("the batch size, at most {}", kUsualMicroBatch)},
               s.micro_batch_size, {1, 1 << 24}, "0");
  table.number({"--recompute-activations",
                "keep only the input of every N-th layer, and compute the layer again in backward: the same bits in "
                "less memory and more time; 1 is every layer, 0 is off",
                recorded},
               s.recompute_activations, {0, 1 << 20});
  const std::string epochs = s.epochs ? fmt::format("{:g}", *s.epochs) : "none: --steps or --epochs is needed";
  table.number({"--steps", "length in optimizer steps", decisive, "as --epochs"}, s.steps, {1, 1'000'000'000}, "0")
      .excludes = "--epochs";
  table.number({"--epochs", "length in passes over the data", decisive, epochs}, s.epochs, {1e-6, 1e6}, "0").excludes =
      "--steps";
}

void add_optimizer_flags(FlagTable& table, Settings& s) {
  table.heading("optimizer");
  table.choice(
      {"--optimizer",
       "rule by which parameters move; adamw-google corrects no bias of the moments, lamb-decayed scales the rate of "
       "decayed parameters alone",
       decisive},
      s.optimizer.method, optimizers());
  table.number({"--learning-rate", "highest rate of the schedule", decisive}, s.schedule.learning_rate, {0.0, 1e6});
  table.number({"--weight-decay", "decoupled; none on biases and LayerNorm", decisive}, s.optimizer.weight_decay,
               {0.0, 1e6});
  table.number({"--adam-beta1", "decay of the first moment", decisive}, s.optimizer.beta1, {0.0, 0.9999999});
  table.number({"--adam-beta2", "decay of the second moment", decisive}, s.optimizer.beta2, {0.0, 0.9999999});
  table
      .number({"--adam-epsilon", "added to the root of the second moment", decisive, "1e-06, for adamw 1e-08"},
              s.adam_epsilon, {1e-30, 1.0}, "")
      .target.value = [&s] { return fmt::format("{}", s.optimizer.epsilon); };
  table.number({"--clip-norm", "largest norm of all gradients together; 0 is off", decisive}, s.optimizer.clip_norm,
               {0.0, 1e30});
  table.choice(
      {"--schedule",
       "course of the learning rate, with warm-up; google begins a straight line at step 0, polynomial is NVIDIA's "
       "square root",
       decisive},
      s.schedule.schedule, schedules());
  table.text({"--freeze",
              "parts that are not trained, separated by commas: embeddings, layers by number or range (0-3), pooler "
              "(default none)",
              decisive, "", "LIST"},
             s.parts.freeze);
  table.number({"--layer-decay",
                "factor of the learning rate from the head to the last layer, and from each layer to the one below it, "
                "the embeddings last; 1 is off",
                decisive},
               s.parts.decay, {1e-6, 1.0});
  const std::string ratio = s.warmup_ratio ? fmt::format("{}", *s.warmup_ratio) : "as --warmup-steps";
  table
      .number({"--warmup-steps", "steps of linear warm-up", decisive, s.warmup_ratio ? "as --warmup-ratio" : "0"},
              s.warmup_steps, {0}, "0")
      .excludes = "--warmup-ratio";
  table.number({"--warmup-ratio", "warm-up as a share of all steps", decisive, ratio}, s.warmup_ratio, {0.0, 1.0}, "-1")
      .excludes = "--warmup-steps";
}

void add_data_flags(FlagTable& table, Settings& s, const std::string& usual_length) {
  table.heading(kLength);
  table.number({"--max-seq-length", "tokens of an example made from text; longer is cut", decisive,
                usual_length + ", or the model's positions if those are fewer"},
               s.max_seq_length, {5, 1 << 20}, "128");
  table.number({"--seed", "number that every random choice follows from", decisive}, s.seed, {0});
  table
      .toggle(
          {"--shuffle", "draw a new order of the examples every epoch (default); --no-shuffle: file order", decisive},
          s.shuffle)
      .negative = "--no-shuffle";
}

void add_interval_flags(FlagTable& table, Settings& s) {
  table.heading("logs and checkpoints");
  table.number({"--log-every", "steps between lines of metrics, whose losses are means over these steps", recorded},
               s.log_every, {1});
  table.number(
      {"--histograms", "steps between histograms of weights and gradients, which TensorBoard shows; 0 is off", agreed},
      s.histograms, {0});
  table.number({"--eval-every", "steps between evaluations", decisive, "the end of every epoch"}, s.eval_every, {1},
               "0");
  table.number({"--save-every", "steps between checkpoints", agreed}, s.save_every, {1});
  table.number({"--save-every-minutes", "most minutes between checkpoints; 0 is off", agreed}, s.save_every_minutes,
               {0.0, 1e6});
  table.number({"--keep", "checkpoints kept; older ones are removed", recorded}, s.keep, {1, 1 << 20});
  table.toggle(
      {"--save-model-only",
       "when the run has ended remove its checkpoints, so that the model alone stays; it cannot be made longer then",
       agreed},
      s.save_model_only);
}

}  // namespace

/// The order is that of the settings in resume.json.
void add_flags(FlagTable& table, Settings& settings, const std::string& usual_length) {
  add_run_flags(table, settings);
  add_device_flags(table, settings);
  add_length_flags(table, settings);
  add_optimizer_flags(table, settings);
  add_data_flags(table, settings, usual_length);
  add_interval_flags(table, settings);
}

FlagValues Settings::values(Role role) const {
  Settings copy = *this;
  FlagTable table;
  add_flags(table, copy);
  return table.values(role);
}

}  // namespace bertrand::training
