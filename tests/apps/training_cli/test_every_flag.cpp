// Which setting each flag of the training programs is.
#include <doctest/doctest.h>

#include <CLI/CLI.hpp>

#include "apps/training_cli/table_flags.h"
#include "training/run/settings.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

Settings read(const std::string& line) {
  CLI::App app;
  Settings settings;
  FlagTable table;
  add_flags(table, settings);
  cli::add_table(app, table);
  app.parse(line);
  return settings;
}

/// The flags that are on or off.
const std::vector<std::pair<std::string, bool Settings::*>> kSwitches = {
    {"--resume", &Settings::resume},
    {"--overwrite", &Settings::overwrite},
    {"--plan", &Settings::plan_only},
    {"--validate-only", &Settings::validate_only},
    {"--dry-run", &Settings::dry_run},
    {"--overfit-batch", &Settings::overfit_batch},
    {"--quiet", &Settings::quiet},
    {"--measured-products", &Settings::measured_products},
    {"--save-model-only", &Settings::save_model_only}};

/// All others; --epochs and --warmup-ratio exclude two of them.
const std::string kValues =
    "--output o --log-format jsonl --profile p --device d --memory 8GiB --replicas 11 --threads 12 "
    "--collective-timeout 13.5 --cpu-kernels k --precision bf16 --batch-size 14 --micro-batch-size 15 "
    "--recompute-activations 16 --steps 17 --optimizer lamb --learning-rate 0.125 --weight-decay 0.25 "
    "--adam-beta1 0.5 --adam-beta2 0.75 --adam-epsilon 0.0625 --clip-norm 18.5 --schedule cosine --freeze pooler "
    "--layer-decay 0.375 --warmup-steps 19 --max-seq-length 20 --seed 21 --no-shuffle --log-every 22 --histograms 23 "
    "--eval-every 24 --save-every 25 --save-every-minutes 26.5 --keep 27 ";

}  // namespace

TEST_CASE("every flag with a value that the training programs share is the setting of its name") {
  const Settings s = read(kValues);
  CHECK(s.output == "o");
  CHECK(s.json_lines);
  CHECK(s.profile == "p");
  CHECK(s.device == "d");
  CHECK(s.memory == "8GiB");
  CHECK(s.replicas == 11);
  CHECK(s.threads == 12);
  CHECK(s.collective_timeout == 13.5);
  CHECK(s.cpu_kernels == "k");
  CHECK(s.precision_name() == "bf16");
  CHECK(s.batch_size == 14);
  CHECK(s.micro_batch_size == 15);
  CHECK(s.recompute_activations == 16);
  CHECK(s.steps == 17);
  CHECK(s.optimizer.method == optim::Method::lamb);
  CHECK(s.schedule.learning_rate == 0.125);
  CHECK(s.optimizer.weight_decay == 0.25);
  CHECK(s.optimizer.beta1 == 0.5);
  CHECK(s.optimizer.beta2 == 0.75);
  CHECK(s.adam_epsilon == 0.0625);
  CHECK(s.optimizer.clip_norm == 18.5);
  CHECK(s.schedule.schedule == optim::Schedule::cosine);
  CHECK(s.parts.freeze == "pooler");
  CHECK(s.parts.decay == 0.375);
  CHECK(s.warmup_steps == 19);
  CHECK(s.max_seq_length == 20);
  CHECK(s.seed == 21);
  CHECK_FALSE(s.shuffle);
  CHECK(s.log_every == 22);
  CHECK(s.histograms == 23);
  CHECK(s.eval_every == 24);
  CHECK(s.save_every == 25);
  CHECK(s.save_every_minutes == 26.5);
  CHECK(s.keep == 27);
  const Settings others = read("--epochs 1.5 --warmup-ratio 0.25");
  CHECK(others.epochs == 1.5);
  CHECK(others.warmup_ratio == 0.25);
}

TEST_CASE("a switch that the training programs share is the setting of its name alone") {
  for (const auto& [flag, own] : kSwitches)
    for (const auto& [name, setting] : kSwitches) {
      CAPTURE(flag);
      CAPTURE(name);
      CHECK(read(flag).*setting == (name == flag));
    }
  CHECK(read("--shuffle").shuffle);
}

TEST_CASE("no flag that the training programs share is left out here") {
  Settings settings;
  FlagTable table;
  add_flags(table, settings);
  std::string given = " --epochs --warmup-ratio --shuffle " + kValues;
  for (const auto& [flag, setting] : kSwitches) given += flag + " ";
  for (const Flag& flag : table.flags())
    CHECK_MESSAGE(given.find(" " + flag.name + " ") != std::string::npos, flag.name);
}
