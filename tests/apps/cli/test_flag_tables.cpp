// The flags of the training programs themselves: what each says of itself, and that none is left out of the record.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "apps/finetune/options.h"
#include "apps/pretrain/options.h"
#include "apps/pretrain/pretrain_setting.h"

using namespace bertrand;
using namespace bertrand::training;

namespace {

/// The tables refer to the options.
struct Tables {
  pretrain::Options pretraining;
  finetune::Options finetuning;
  FlagTable pretrain, finetune;

  Tables() {
    pretrain::add_flags(pretrain, pretraining);
    finetune::add_flags(finetune, finetuning);
  }
};

std::set<std::string> names(const FlagTable& table, Role role) {
  std::set<std::string> names;
  for (const auto& [flag, value] : table.values(role)) names.insert(flag);
  return names;
}

bool says(const Flag& flag, const std::string& words) { return flag.help.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("the usual length of an example is that of its task, and the help says so") {
  const Tables tables;
  CHECK(says(tables.pretrain.flag("--max-seq-length"), "default 128, or the model's positions"));
  const Flag& flag = tables.finetune.flag("--max-seq-length");
  CHECK(says(flag,
             "default 128, of squad and squad2 384, of msmarco 512, without --train that of the run that made "
             "--model, or the model's positions"));
  const auto usual = [](const std::string& task) {
    finetune::Options options;
    options.task = task;
    return options.usual_length();
  };
  CHECK(usual("squad") == 384);
  CHECK(usual("squad2") == 384);
  CHECK(usual("msmarco") == 512);
  for (const char* task : {"mrpc", "custom", "ner", "tokens"}) CHECK(usual(task) == 128);
}

TEST_CASE("every flag has a heading and a help and every number and choice names its range and default") {
  const Tables tables;
  for (const FlagTable* table : {&tables.pretrain, &tables.finetune}) {
    std::set<std::string> seen;
    for (const Flag& flag : table->flags()) {
      CAPTURE(flag.name);
      CHECK(seen.insert(flag.name).second);
      CHECK(flag.name.starts_with("--"));
      CHECK_FALSE(flag.group.empty());
      CHECK_FALSE(flag.help.empty());
      const bool number = flag.type == "INT" || flag.type == "FLOAT";
      if (number) CHECK((says(flag, " to ") || says(flag, "at least ")));
      if (number || (flag.type == "NAME" && !flag.required)) CHECK(says(flag, "default "));
    }
  }
}

// A flag is local if its author says nothing. Each new one of these is a decision.
TEST_CASE("the flags that no record and no other process needs are these") {
  const Tables tables;
  std::set<std::string> common = {"--profile", "--strict", "--threads", "--vocab-file"};
  std::set<std::string> local = common;
  local.insert({"--input", "--eval-input", "--config", "--init", "--recipe", "--list-recipes", "--check-inputs"});
  CHECK(names(tables.pretrain, Role::local) == local);
  local = common;
  local.insert({"--model", "--train", "--eval", "--predict", "--qrels", "--id-column", "--sweep", "--on-bad-line"});
  CHECK(names(tables.finetune, Role::local) == local);
  for (const FlagTable* table : {&tables.pretrain, &tables.finetune})
    CHECK(names(*table, Role::command) == std::set<std::string>{"--resume", "--overwrite", "--plan", "--quiet",
                                                                "--validate-only", "--dry-run", "--overfit-batch"});
}

TEST_CASE("pre-training, which chooses no best model, has no patience") {
  const Tables tables;
  const auto has = [](const FlagTable& table) { return std::ranges::count(table.flags(), "--patience", &Flag::name); };
  CHECK(has(tables.pretrain) == 0);
  CHECK(has(tables.finetune) == 1);
}

TEST_CASE("run_config.json holds every flag that is recorded") {
  const Tables tables;
  const support::PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "1"}).code == 0);
  const auto settings = nlohmann::json::parse(setting.file("run/run_config.json")).at("settings");
  for (const Role role : {Role::recorded, Role::agreed, Role::decisive})
    for (const std::string& flag : names(tables.pretrain, role)) {
      CAPTURE(flag);
      CHECK(settings.contains(flag.substr(2)) == (flag != "--warmup-ratio"));  // --warmup-steps stands for both
    }
  for (const Flag& flag : tables.pretrain.flags()) {
    if (flag.role != Role::recorded && flag.role != Role::agreed) continue;
    CAPTURE(flag.name);
    const auto& value = settings.at(flag.name.substr(2));
    CHECK(value.is_number_float() == (flag.type == "FLOAT"));
    CHECK(value.is_number_integer() == (flag.type == "INT"));
    CHECK(value.is_boolean() == flag.type.empty());
  }
  // A program's own flags are written if they are decisive. It has no others to record.
  Tables own;
  for (FlagTable* table : {&own.pretrain, &own.finetune}) *table = {};
  pretrain::add_own_flags(own.pretrain, own.pretraining);
  finetune::add_own_flags(own.finetune, own.finetuning);
  for (const FlagTable* table : {&own.pretrain, &own.finetune})
    for (const Role role : {Role::recorded, Role::agreed}) CHECK(names(*table, role).empty());
}
