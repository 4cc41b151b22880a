// What may differ between a checkpoint and the run that goes on with it.
#include <doctest/doctest.h>

#include "io/crc32c.h"
#include "io/signals.h"
#include "support/growth.h"
#include "support/program.h"
#include "support/refusal.h"
#include "training/run/run_state.h"

using namespace bertrand;
using training::Conditions;
using training::InputFile;

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

TEST_CASE("a run may be made longer in the unit in which it was, its micro-batch smaller and its precision another") {
  const auto allowed = [](const std::string& flag, const std::string& before, const std::string& now) {
    const Conditions old{.settings = {{flag, before}}, .inputs = {}}, next{.settings = {{flag, now}}, .inputs = {}};
    std::size_t changes = 0;
    support::refusal(Failure::usage, [&] { changes = next.changes_since(old, "checkpoint-1").size(); });
    return changes == 1;
  };
  CHECK(allowed("--steps", "1", "2"));
  CHECK(allowed("--epochs", "0.5", "1"));
  CHECK(allowed("--micro-batch-size", "2", "1"));
  CHECK(allowed("--precision", "f32", "bf16"));
  CHECK_FALSE(allowed("--precision", "f64", "f32"));
  CHECK_FALSE(allowed("--precision", "f16", "f64"));
  CHECK_FALSE(allowed("--steps", "2", "1"));
  CHECK_FALSE(allowed("--steps", "0", "100"));  // it was as long as --epochs said
  CHECK_FALSE(allowed("--steps", "100", "0"));
  CHECK_FALSE(allowed("--micro-batch-size", "1", "2"));
  CHECK_FALSE(allowed("--learning-rate", "1", "2"));
}

TEST_CASE("who gives another kind of length or of warm-up is told what the run was begun with") {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  const auto refusal = [](const Settings& before, const Settings& now) {
    const Conditions old{.settings = before, .inputs = {}}, next{.settings = now, .inputs = {}};
    return support::refusal(Failure::usage, [&] { next.changes_since(old, "checkpoint-1"); });
  };
  CHECK(
      refusal({{"--steps", "0"}, {"--epochs", "3"}}, {{"--steps", "9"}, {"--epochs", "0"}})
          .ends_with("--steps was not given, now 9; --epochs was 3, now not given; hint: --resume with --output alone "
                     "takes all from run_config.json, --epochs may be raised, and another --output begins a new run"));
  CHECK(refusal({{"--steps", "9"}, {"--epochs", "0"}}, {{"--steps", "0"}, {"--epochs", "3"}})
            .find(" run_config.json, --steps may be raised, ") != std::string::npos);
  CHECK(
      refusal({{"--warmup-steps", "0"}, {"--warmup-ratio", "0.1"}}, {{"--warmup-steps", "5"}, {"--warmup-ratio", "-1"}})
          .find("--warmup-steps was 0, now 5; --warmup-ratio was 0.1, now not given; hint: ") != std::string::npos);
}

TEST_CASE("an input file that has changed is noticed by its size or its contents, and so is one more or one less") {
  const auto refused = [](const std::vector<InputFile>& before, const std::vector<InputFile>& now) {
    return !support::refusal(Failure::usage, [&] {
              Conditions{.settings = {}, .inputs = now}.changes_since({.settings = {}, .inputs = before},
                                                                      "checkpoint-1");
            }).empty();
  };
  const InputFile a{"a", 5, 7}, b{"b", 9, 8};
  CHECK_FALSE(refused({a, b}, {{"moved", 5, 7}, b}));
  CHECK(refused({a}, {{"a", 6, 7}}));
  CHECK(refused({a}, {{"a", 5, 8}}));
  CHECK(refused({a, b}, {b, a}));
  CHECK(refused({a, b}, {a}));
  CHECK(refused({a}, {a, b}));
  CHECK(refused({}, {a}));

  const support::TemporaryDirectory directory;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1} << 20, (std::size_t{1} << 20) + 3}) {
    const std::string text(size, 'x');
    support::write_text(directory / "file", text);
    const InputFile file = InputFile::of(directory / "file");
    CHECK(file.bytes == size);
    CHECK(file.crc32c == io::crc32c(text));
  }
  CHECK(support::refusal(Failure::io, [&] { InputFile::of(directory / "none"); }) ==
        (directory / "none").string() + ": open: No such file or directory");
}

TEST_CASE("the checksum of a file is not waited for by a process that is asked to leave") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "file", "x");
  const io::LeaveRequest leave;
  CHECK(support::refusal(Failure::interrupted, [&] {
          InputFile::of(directory / "file");
        }).starts_with("interrupted while reading " + (directory / "file").string() + ": nothing was written"));
}

TEST_CASE("a run that an earlier version began with another order of examples is not gone on with") {
  io::Json json = training::RunState().to_json(Conditions());
  CHECK(training::parse_run_state(json, "state.json").steps_done == 0);
  json["format_version"] = 2;
  CHECK(support::refusal(Failure::model, [&] {
          training::parse_run_state(json, "state.json");
        }).starts_with("state.json: format_version: expected 3, got 2; hint: "));
}

TEST_CASE("a saved state with numbers that no run comes to is refused, as counting on would overflow") {
  const training::RunState state{
      .steps_done = 5, .next = {.epoch = 5, .step = 5}, .unlogged = {.steps = 5, .sums = {}}};
  const io::Json json = state.to_json({});
  CHECK(training::parse_run_state(json, "s").next.epoch == 5);
  const auto refused = [&](const char* place, const io::Json& value) {
    io::Json changed = json;
    changed[io::Json::json_pointer(place)] = value;
    return support::refusal(Failure::model, [&] { training::parse_run_state(changed, "s"); });
  };
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(refused("/epoch", kMost) == "s: epoch: expected an integer in [0, 5], got 9223372036854775807");
  CHECK(refused("/unlogged/steps", 6) == "s: unlogged.steps: expected an integer in [0, 5], got 6");
  for (const char* place : {"/step_in_epoch", "/best_step", "/evaluations_since_best", "/loss_scale/good_steps",
                            "/loss_scale/skipped_steps"})
    CHECK(refused(place, kMost).ends_with("expected an integer in [0, 5], got 9223372036854775807"));
  CHECK(refused("/loss_scale/scale", 0x1p32) == "");
  CHECK(refused("/loss_scale/scale", 1e300).starts_with("s: loss_scale.scale: expected "));
}

TEST_CASE("of a run that an older version saved it is not known which file was the best model nor how long ago") {
  training::RunState state{
      .steps_done = 9, .best = {.score = 0.5, .step = 3, .crc32c = 4711}, .evaluations_since_best = 2};
  io::Json json = state.to_json({});
  CHECK(training::parse_run_state(json, "state.json").best.crc32c == 4711u);
  CHECK(training::parse_run_state(json, "state.json").evaluations_since_best == 2);
  json.erase("best_model_crc32c");
  json.erase("evaluations_since_best");
  const training::RunState old = training::parse_run_state(json, "state.json");
  CHECK(old.best.step == 3);
  CHECK(old.best.crc32c == 0u);
  CHECK(old.evaluations_since_best == 0);
}

TEST_CASE("sums of losses are the same after a resume, and a run that an older version saved has none") {
  training::RunState state{.steps_done = 3};
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

TEST_CASE("sums of losses begin anew if these are other losses") {
  training::LossSums sums;
  sums.add({{"a", 1}});
  sums.add({{"a", 2}});
  CHECK(sums.means().front().value == 1.5);
  sums.add({{"b", 4}});
  CHECK(sums.steps == 1);
  REQUIRE(sums.sums.size() == 1);
  CHECK(sums.sums[0].name == "b");
  CHECK(sums.sums[0].value == 4);
}

TEST_CASE("settings of a checkpoint are read in a time that grows with their number, and each is a text") {
  io::Json json = training::RunState().to_json(Conditions());
  const double growth = support::growth_by_four(2000, [&](int count) {
    json["settings"] = io::Json::object();
    for (int i = 0; i < count; ++i) io::append(json["settings"], "--flag-" + std::to_string(i), "1");
    CHECK(training::parse_conditions(json, "s").settings.size() == static_cast<std::size_t>(count));
  });
  CHECK(growth < 8);
  json["settings"] = {{"--seed", 7}};
  CHECK(support::refusal(Failure::model, [&] { training::parse_conditions(json, "s"); }) ==
        "s: settings.--seed: expected a string, got 7");
}
