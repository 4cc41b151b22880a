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

TEST_CASE("sums of losses are the same after a resume, and a run that an older version saved has none") {
  training::RunState state;
  for (const double loss : {0.1, 0.2, 1e-300}) state.unlogged.add({{"loss", loss}, {"other_loss", 1 / loss}});
  io::Json json = io::parse_json(io::json_text(state.to_json({})), {"state.json"});
  const training::LossSums sums = training::parse_run_state(json, "state.json").unlogged;
  CHECK(sums.steps == 3);
  REQUIRE(sums.sums.size() == 2);
  CHECK(sums.sums[0].name == "loss");
  CHECK(sums.sums[0].value == 0.1 + 0.2 + 1e-300);
  CHECK(sums.sums[1].value == 1 / 0.1 + 1 / 0.2 + 1 / 1e-300);
  json.erase("unlogged");
  const training::RunState old = training::parse_run_state(json, "state.json");
  CHECK(old.unlogged.steps == 0);
  CHECK(old.unlogged.sums.empty());
}
