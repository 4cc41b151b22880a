#include "apps/cli/foreign_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ranges>

#include "io/error.h"
#include "io/numbers.h"
#include "io/say.h"

namespace bertrand::cli {
namespace {

struct ForeignFlag {
  const char *name, *own;        ///< the same flag here
  const char* value = nullptr;   ///< what it is here if there it is a switch
  const char* remark = nullptr;  ///< what is not the same
  const char* beside = nullptr;  ///< only in a program that has this flag too
};

constexpr const char* kAllDevices = "and counts the examples of all devices";
constexpr const char* kPretrain = "--eval-input";  // no other program has it

constexpr ForeignFlag kForeignFlags[] = {
    // transformers.TrainingArguments and the example scripts
    {"--model-name-or-path", "--model"},
    {"--model-name-or-path", "--init"},
    {"--output-dir", "--output"},
    {"--overwrite-output-dir", "--overwrite"},
    {"--task-name", "--task"},
    {"--train-file", "--train"},
    {"--train-file", "--input", nullptr, nullptr, kPretrain},
    {"--validation-file", "--eval"},
    {"--validation-file", "--eval-input"},
    {"--test-file", "--predict"},
    {"--per-device-train-batch-size", "--batch-size", nullptr, kAllDevices},
    {"--per-gpu-train-batch-size", "--batch-size", nullptr, kAllDevices},
    {"--num-train-epochs", "--epochs"},
    {"--max-steps", "--steps"},
    {"--lr", "--learning-rate"},
    {"--lr-scheduler-type", "--schedule"},
    {"--max-grad-norm", "--clip-norm"},
    {"--adam-eps", "--adam-epsilon"},
    {"--optim", "--optimizer"},
    {"--label-smoothing-factor", "--label-smoothing"},
    {"--early-stopping-patience", "--patience"},
    {"--logging-steps", "--log-every"},
    {"--eval-steps", "--eval-every"},
    {"--save-steps", "--save-every"},
    {"--save-total-limit", "--keep"},
    {"--resume-from-checkpoint", "--resume", nullptr, "and goes on with the newest checkpoint in --output"},
    {"--fp16", "--precision", "f16"},
    {"--bf16", "--precision", "bf16"},
    {"--tf32", "--precision", "tf32"},
    {"--max-length", "--max-seq-length"},
    {"--mlm-probability", "--masked-lm-prob"},
    {"--save-only-model", "--save-model-only"},
    {"--overfit-batches", "--overfit-batch"},
    {"--fast-dev-run", "--dry-run"},
    {"--test-size", "--eval-split"},
    {"--validation-split", "--eval-split"},
    // google-research/bert and NVIDIA's DeepLearningExamples
    {"--bert-config-file", "--config"},
    {"--config-file", "--config"},
    {"--input-file", "--input"},
    {"--output-file", "--output"},
    {"--bert-model", "--model"},
    {"--init-checkpoint", "--init"},
    {"--init-checkpoint", "--model"},
    {"--train-batch-size", "--batch-size", nullptr, kAllDevices},
    {"--random-seed", "--seed"},
    {"--log-freq", "--log-every"},
    {"--rest-api-port", "--port"},
    {"--num-train-steps", "--steps"},
    {"--num-warmup-steps", "--warmup-steps"},
    {"--warmup-proportion", "--warmup-ratio"},
    {"--save-checkpoints-steps", "--save-every"},
    {"--save-checkpoint-steps", "--save-every"},
    {"--num-steps-per-checkpoint", "--save-every"},
    {"--keep-checkpoint-max", "--keep"},
    {"--display-loss-steps", "--log-every"},
    {"--optimizer-type", "--optimizer"},
    {"--use-fp16", "--precision", "f16"},
    {"--amp", "--precision", "f16"},
    {"--train-csv", "--train"},
    {"--predict-file", "--predict"},
    // finetune, by one who begins with pretrain
    {"--model", "--init"},
    {"--train", "--input", nullptr, nullptr, kPretrain},
    {"--eval", "--eval-input"},
};

struct ForeignValue {
  const char *flag, *name, *own;  ///< null if there is none here
  const char* instead = nullptr;
};

constexpr ForeignValue kForeignValues[] = {
    {"--lr-scheduler-type", "constant_with_warmup", "constant"},
    {"--lr-scheduler-type", "polynomial", nullptr,
     "--schedule linear, as its power is 1 there by default; here polynomial is NVIDIA's, a square root"},
    {"--optim", "adamw_torch", "adamw"},
    {"--optim", "adamw_torch_fused", "adamw"},
    {"--optim", "adamw_hf", "adamw"},
};

/// For a program that has all flags that it names, if it is not about another program.
struct Advice {
  const char *name, *instead;
};

constexpr std::string_view kExport = "export ";

constexpr const char* kGpus = "--device cuda, or cuda:0,cuda:1 for several GPUs of a host";
constexpr const char* kEvaluationBatch =
    "--micro-batch-size is how many examples are computed at once, in evaluation too";

constexpr const char* kAccumulation =
    "--batch-size is the examples of a whole step, and --micro-batch-size how many of them are computed at once";
constexpr const char* kFiles = "--input takes files: --input DIR/*";
constexpr const char* kTpu = "leave it out: there is no TPU; --device cpu or cuda";

constexpr Advice kAdvice[] = {
    {"--gradient-accumulation-steps", kAccumulation},
    {"--num-accumulation-steps", kAccumulation},
    {"--gradient-checkpointing", "--recompute-activations 1 computes the layers again in backward"},
    {"--input-dir", kFiles},
    {"--input-files-dir", kFiles},
    {"--eval-files-dir", "--eval-input takes files: --eval-input DIR/*"},
    {"--do-train", "leave it out: what is given is done; --train trains"},
    {"--do-train", "leave it out: what is given is done; --input trains, --eval-input evaluates"},
    {"--do-eval", "leave it out: what is given is done; --eval evaluates"},
    {"--do-eval", "leave it out: what is given is done; --input trains, --eval-input evaluates"},
    {"--do-predict", "leave it out: what is given is done; --predict predicts"},
    {"--do-lower-case", "leave it out: the model's directory says it; with --vocab-file, --cased keeps case"},
    {"--data-dir", "name the files: --train, --eval, --predict"},
    {"--data-dir", "name the files: --input, --eval-input"},
    {"--dataset-name", "nothing is downloaded; name files: --train, --eval"},
    {"--dataset-name", "nothing is downloaded; name files: --input, --eval-input"},
    {"--report-to", "metrics.jsonl and TensorBoard's files are always written into --output"},
    {"--logging-dir", "metrics.jsonl and TensorBoard's files are always written into --output"},
    {"--evaluation-strategy", "--eval-every STEPS; without it the end of every epoch"},
    {"--eval-strategy", "--eval-every STEPS; without it the end of every epoch"},
    {"--save-strategy", "--save-every STEPS, --save-every-minutes MINUTES"},
    {"--load-best-model-at-end", "leave it out: the model that is best on --eval is what is kept"},
    {"--load-best-model-at-end", "leave it out: the last model is what is kept, whatever --eval-input says"},
    {"--greater-is-better", "leave it out: on --eval a loss is best if it is lowest, everything else if it is highest"},
    {"--wandb", "metrics.jsonl and TensorBoard's files are always written into --output"},
    {"--onnx", "export --model DIR --format onnx makes one of the result"},
    {"--dataloader-num-workers", "leave it out: batches are made beside the training; --threads is for all of it"},
    {"--num-workers", "leave it out: batches are made beside the training; --threads is for all of it"},
    {"--local-rank", "start with mpirun; GPUs of a host are --device cuda:0,cuda:1"},
    {"--ddp-backend", "start with mpirun; GPUs of a host are --device cuda:0,cuda:1"},
    {"--fsdp", "each replica holds the whole model"},
    {"--deepspeed", "each replica holds the whole model"},
    {"--use-tpu", kTpu},
    {"--tpu-name", kTpu},
    {"--master", kTpu},
    {"--iterations-per-loop", kTpu},
    {"--bert-config-file", "leave it out: --model is a directory with its config.json or bert_config.json"},
    {"--num-labels", "leave it out: the labels are those of --train"},
    {"--is-training", "leave it out: --train trains"},
    {"--loss-scale", "leave it out: with --precision f16 the scale follows the gradients"},
    {"--max-eval-steps", "leave it out: an evaluation reads all of its file"},
    {"--skip-checkpoint", "--save-model-only keeps no checkpoints; what is not saved is lost if the run is killed"},
    {"--disable-progress-bar", "--quiet prints no plan and no progress"},
    {"--no-cuda", "leave it out: --device cpu is the default"},
    {"--eval-batch-size", kEvaluationBatch},
    {"--predict-batch-size", kEvaluationBatch},
    {"--per-device-eval-batch-size", kEvaluationBatch},
    {"--use-gpu", kGpus},
    {"--num-gpu", kGpus},
    {"--num-gpu-cores", kGpus},
    {"--multi-gpu", kGpus},
    {"--horovod", "start with mpirun; GPUs of a host are --device cuda:0,cuda:1"},
    {"--use-xla", "leave it out: no graph is compiled; kernels are fused by hand"},
    {"--version-2-with-negative", "--task squad2"},
    {"--save-for-serving", "export --model DIR --format saved-model makes a SavedModel of the result"},
    {"--enable-batching", "leave it out: what waits is always computed together"},
    {"--phase2", "--recipe nvidia-phase2 --init PHASE1 --keep-moments"},
    {"--push-to-hub", "the model's directory is what transformers opens; upload it with its own tools"},
    {"--dropout", "the model's config.json has hidden_dropout_prob and attention_probs_dropout_prob"},
};

const CLI::Option* option_of(const CLI::App& app, const std::string& name) { return app.get_option_no_throw(name); }

/// The flag of `app` that a foreign one is.
const ForeignFlag* own_flag(const CLI::App& app, const std::string& name) {
  const auto* const found = std::ranges::find_if(kForeignFlags, [&](const ForeignFlag& flag) {
    return name == flag.name && option_of(app, flag.own) && (!flag.beside || option_of(app, flag.beside));
  });
  return found == std::end(kForeignFlags) ? nullptr : found;
}

bool is_for(const CLI::App& app, std::string_view advice) {
  if (advice.starts_with(kExport)) return true;
  for (std::size_t begin = advice.find("--"); begin != advice.npos; begin = advice.find("--", begin + 2)) {
    const std::size_t end = advice.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", begin);
    if (!option_of(app, std::string(advice.substr(begin, end - begin)))) return false;
  }
  return true;
}

/// "--save-every 10min" is --save-every-minutes 10: units of time, in minutes.
std::optional<std::string> in_minutes(const std::string& text) {
  struct Unit {
    const char* name;
    double minutes;
  };
  for (const Unit& unit : {Unit{"min", 1}, Unit{"h", 60}, Unit{"s", 1.0 / 60}}) {
    const std::string name = unit.name;
    if (!text.ends_with(name)) continue;
    const auto number = io::number_in<double>(std::string_view(text).substr(0, text.size() - name.size()));
    if (number) return fmt::format("{}", *number * unit.minutes);
  }
  return std::nullopt;
}

/// `value` of a foreign flag as it is called here.
std::string own_value(const std::string& flag, const std::string& value) {
  for (const ForeignValue& known : kForeignValues) {
    if (flag != known.flag || value != known.name) continue;
    if (!known.own) fail(Failure::usage, "{}: {} is not known here; hint: {}", flag, value, known.instead);
    return known.own;
  }
  return value;
}

/// The value of a switch, as Python's scripts take it; nothing if it is none.
std::optional<bool> yes_or_no(const std::string& text) {
  for (const char* yes : {"true", "True", "1", "yes"})
    if (text == yes) return true;
  for (const char* no : {"false", "False", "0", "no"})
    if (text == no) return false;
  return {};
}

}  // namespace

std::vector<std::string> with_own_names(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> own;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string argument = arguments[i];
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::string name = argument.substr(0, equals);
    if (!name.starts_with("--")) {
      own.push_back(std::move(argument));
      continue;
    }
    const ForeignFlag* const flag = option_of(app, name) ? nullptr : own_flag(app, name);
    if (!flag) {
      own.push_back(std::move(argument));
      continue;
    }
    std::string value = argument.substr(equals);  // with its =
    const std::string next = i + 1 < arguments.size() ? arguments[i + 1] : "";
    // A switch there may have been given a value, and a switch here takes none.
    if (flag->value || option_of(app, flag->own)->get_items_expected_max() == 0) {
      const bool apart =
          value.empty() && (yes_or_no(next) || (flag->remark && !next.empty() && !next.starts_with("-")));
      const std::string said = apart ? next : value.empty() ? "true" : value.substr(1);
      const std::optional<bool> yes = yes_or_no(said);
      if (!yes && flag->remark)
        fail(Failure::usage, "{}: expected no value, got {}; hint: it is called {} here, {}", name, said, flag->own,
             flag->remark);
      if (!yes) fail(Failure::usage, "{}: expected true or false, got \"{}\"", name, said);
      value = flag->value ? fmt::format("={}", flag->value) : "";
      i += apart;
      if (!*yes) {
        io::tell("note: {} that is false is left out", name);
        continue;
      }
    } else if (!value.empty()) {
      value = "=" + own_value(name, value.substr(1));
    } else if (!next.empty() && own_value(name, next) != next) {
      value = "=" + own_value(name, next);
      ++i;
    }
    io::tell("note: {} is called {}{} here{}", name, flag->own, flag->value ? fmt::format(" {}", flag->value) : "",
             flag->remark ? fmt::format(", {}", flag->remark) : "");
    own.push_back(flag->own + value);
  }
  return own;
}

void use_own_units(const CLI::App& app, Given& flag) {
  const CLI::Option* const in = option_of(app, "--save-every-minutes");
  if (!in || flag.name != "--save-every" || flag.values.size() != 1) return;
  if (auto minutes = in_minutes(flag.values[0]))
    flag = {.option = in, .name = "--save-every-minutes", .values = {*std::move(minutes)}};
}

std::vector<std::string> with_own_units(const CLI::App& app, const std::vector<std::string>& arguments) {
  std::vector<std::string> own;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool apart = arguments[i] == "--save-every" && i + 1 < arguments.size();
    const std::string word = apart ? arguments[i] + "=" + arguments[i + 1] : arguments[i];
    Given flag;
    if (const std::size_t equals = word.find('='); equals != word.npos)
      flag = {.name = word.substr(0, equals), .values = {word.substr(equals + 1)}};
    use_own_units(app, flag);
    if (flag.option) append(own, flag);
    else own.push_back(arguments[i]);
    i += apart && flag.option;
  }
  return own;
}

std::optional<std::string> hint_for(const CLI::App& app, const std::string& name) {
  if (const ForeignFlag* flag = own_flag(app, name)) return fmt::format("it is called {} here", flag->own);
  const auto* const found = std::ranges::find_if(
      kAdvice, [&](const Advice& advice) { return name == advice.name && is_for(app, advice.instead); });
  if (found == std::end(kAdvice)) return std::nullopt;
  return found->instead;
}

}  // namespace bertrand::cli
