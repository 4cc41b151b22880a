// What may differ between a checkpoint and the run that goes on with it.
#include <doctest/doctest.h>

#include "support/refusal.h"
#include "training/run/run_state.h"

using namespace bertrand;
using training::Conditions;

TEST_CASE("a flag that an older version did not write is no difference unless it is given") {
  const Conditions old{.settings = {{"--seed", "1"}}, .inputs = {}};
  Conditions now{
      .settings = {{"--seed", "1"}, {"--layer-decay", "1"}}, .inputs = {}, .command = {"finetune", "--resume"}};
  CHECK(now.changes_since(old, "checkpoint-1").empty());
  for (const char* word : {"--layer-decay", "--layer-decay=0.5"}) {
    now.command = {"finetune", "--resume", word};
    CHECK(support::refusal(Failure::usage, [&] {
            now.changes_since(old, "checkpoint-1");
          }).find("--layer-decay was not given, now 1") != std::string::npos);
  }
  now.settings[0].second = "2";
  CHECK(support::refusal(Failure::usage, [&] { now.changes_since(old, "checkpoint-1"); }).find("--seed was 1, now 2") !=
        std::string::npos);
}

TEST_CASE("a run that an earlier version began with another order of examples is not gone on with") {
  io::Json json = training::RunState().to_json(Conditions());
  CHECK(training::parse_run_state(json, "state.json").steps_done == 0);
  json["format_version"] = 2;
  CHECK(support::refusal(Failure::model, [&] {
          training::parse_run_state(json, "state.json");
        }).starts_with("state.json: format_version: expected 3, got 2; hint: "));
}
