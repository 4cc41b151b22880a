#include "apps/training_cli/table_flags.h"

#include <doctest/doctest.h>

#include <CLI/CLI.hpp>

#include "io/error.h"
#include "support/refusal.h"
#include "training/run/settings.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

Settings parse(const std::string& flags, Settings settings = pretraining_defaults()) {
  CLI::App app;
  FlagTable table;
  add_flags(table, settings);
  cli::add_table(app, table);
  app.parse(flags);
  complete(settings);
  return settings;
}

std::string refusal(const std::string& flags) {
  return support::refusal(Failure::usage, [&] { parse("--output out " + flags); });
}

}  // namespace

TEST_CASE("pre-training begins with the documented defaults") {
  const Settings s = parse("--output out --steps 10");
  CHECK(s.optimizer.method == optim::Method::adamw_google);
  CHECK(s.optimizer.epsilon == 1e-6);
  CHECK(s.schedule.schedule == optim::Schedule::google);
  CHECK(s.schedule.learning_rate == 1e-4);
  CHECK(s.schedule.warmup_steps == 0);
  CHECK(!s.warmup_ratio);
  CHECK(s.batch_size == 32);
  CHECK(s.micro_batch_size == 32);
  CHECK(s.shuffle);
  CHECK(s.seed == 42);
}

TEST_CASE("fine-tuning begins with the documented defaults") {
  const Settings s = parse("--output out", finetuning_defaults());
  CHECK(s.epochs == 3);
  CHECK(s.optimizer.method == optim::Method::adamw);
  CHECK(s.optimizer.epsilon == 1e-8);
  CHECK(s.schedule.schedule == optim::Schedule::linear);
  CHECK(s.schedule.learning_rate == 5e-5);
  CHECK(s.warmup_ratio == 0.1);
}

TEST_CASE("a length in steps and a warm-up in steps replace the defaults in epochs and shares") {
  const Settings s = parse("--output out --steps 7 --warmup-steps 2", finetuning_defaults());
  CHECK(!s.epochs);
  CHECK(s.steps == 7);
  CHECK(!s.warmup_ratio);
  CHECK(s.schedule.warmup_steps == 2);
}

TEST_CASE("what stands in place of a run has a length of its own if none is given, and one rate from its first step") {
  const Settings batch = parse("--overfit-batch", finetuning_defaults());
  CHECK(batch.steps == 100);
  CHECK(!batch.epochs);
  CHECK(batch.schedule.schedule == optim::Schedule::constant);
  CHECK(batch.schedule.warmup_steps == 0);
  CHECK(!batch.warmup_ratio);
  CHECK(parse("--overfit-batch --warmup-steps 7").schedule.warmup_steps == 0);
  CHECK(parse("--overfit-batch --steps 5").steps == 5);
  CHECK(parse("--validate-only").steps == 100);
  CHECK(!parse("--validate-only --epochs 2").steps);
  CHECK(parse("--dry-run", finetuning_defaults()).schedule.schedule == optim::Schedule::linear);
  CHECK(refusal("--dry-run").starts_with("--steps, --epochs: "));
}

TEST_CASE("a warm-up given as a share is kept, in pre-training too") {
  for (const Settings& defaults : {pretraining_defaults(), finetuning_defaults()})
    CHECK(parse("--output out --steps 10 --warmup-ratio 0.2", defaults).warmup_ratio == 0.2);
}

TEST_CASE("a micro-batch is never larger than the batch") {
  CHECK(parse("--output out --steps 1 --batch-size 20").micro_batch_size == 20);
  CHECK(parse("--output out --steps 1 --batch-size 256").micro_batch_size == 32);
  CHECK(parse("--output out --steps 1 --batch-size 8 --micro-batch-size 64").micro_batch_size == 8);
}

TEST_CASE("a sequence is as long as asked for, up to all positions of the model") {
  const Settings given = parse("--output out --steps 1 --max-seq-length 48"), usual = parse("--output out --steps 1");
  CHECK(given.sequence_length(512) == 48);
  CHECK(given.sequence_length(48) == 48);
  CHECK(support::refusal(Failure::usage, [&] { given.sequence_length(47); }).starts_with("--max-seq-length: "));
  CHECK(usual.sequence_length(512) == 128);
  CHECK(usual.sequence_length(64) == 64);
}

TEST_CASE("values out of range, no numbers and unknown names are refused in one line that names the flag") {
  CHECK(refusal("--steps 0") == "--steps: expected a whole number, 1 to 1000000000, got \"0\"");
  CHECK(refusal("--steps 1 --learning-rate nan").starts_with("--learning-rate: expected a number"));
  CHECK(refusal("--steps 1 --learning-rate 1e-3x").starts_with("--learning-rate: expected a number"));
  CHECK(refusal("--steps 1 --batch-size -3").starts_with("--batch-size: expected a whole number, 1 to"));
  CHECK(refusal("--steps 1 --optimizer adam") ==
        "--optimizer: expected one of adamw, adamw-google, lamb, lamb-decayed, got \"adam\"; did you mean adamw?");
  CHECK(refusal("--steps 1 --precision fp16")
            .starts_with("--precision: expected one of f32, tf32, bf16, f16, f64, got \"fp16\""));
  CHECK(refusal("--steps 1 --replicas 0").find("--replicas") != std::string::npos);
  CHECK(refusal("").starts_with("--steps, --epochs: expected one of them"));
  CHECK(refusal("--steps 1 --resume --overwrite").starts_with("--resume, --overwrite"));
  CHECK(support::refusal(Failure::usage, [] { parse("--steps 1"); }) ==
        "--output: expected a directory for the run, got none");
}

TEST_CASE("the precision decides the result") {
  const auto with = [](const std::string& precision) {
    return parse("--output out --steps 3 --precision " + precision).values(Role::decisive);
  };
  for (const char* other : {"tf32", "bf16", "f16", "f64"}) CHECK(with(other) != with("f32"));
  CHECK(parse("--output out --steps 3 --precision tf32").precision_name() == "tf32");
}

TEST_CASE("what decides the result is listed, and threads are not in it") {
  const auto with = parse("--output out --steps 3 --threads 1").values(Role::decisive);
  CHECK(with == parse("--output other --steps 3 --threads 2 --save-every 7").values(Role::decisive));
  CHECK(with != parse("--output out --steps 3 --seed 1").values(Role::decisive));
}

TEST_CASE("of flags that exclude each other each stands for the other one, where a recipe sets that") {
  Settings settings = pretraining_defaults();
  FlagTable table;
  add_flags(table, settings);
  for (const auto& [flag, other] : {std::pair("--steps", "--epochs"), std::pair("--warmup-steps", "--warmup-ratio")}) {
    CHECK(table.flag(flag).excludes == other);
    CHECK(table.flag(other).excludes == flag);
  }
}

TEST_CASE("flags stand under the headings of --help that say what they are for") {
  Settings settings = pretraining_defaults();
  FlagTable table;
  add_flags(table, settings);
  const auto heading = [&](const char* flag) { return table.flag(flag).group; };
  for (const char* flag : {"--output", "--profile", "--device", "--precision"}) CHECK(heading(flag) == "run");
  for (const char* flag : {"--batch-size", "--epochs", "--max-seq-length", "--seed", "--shuffle"})
    CHECK(heading(flag) == "length and batches");
  for (const char* flag : {"--optimizer", "--warmup-ratio"}) CHECK(heading(flag) == "optimizer");
  for (const char* flag : {"--log-every", "--save-model-only"}) CHECK(heading(flag) == "logs and checkpoints");
}
