#include <doctest/doctest.h>

#include <filesystem>

#include "apps/pretrain/pretrain_setting.h"
#include "io/tfrecord.h"
#include "support/tf_example.h"

using namespace bertrand;
using support::Flags;
using support::joined;
using support::Outcome;
using support::PretrainSetting;
namespace fs = std::filesystem;

TEST_CASE("any number of replicas and threads gives the bits of one replica: weights, moments, metrics, evaluation") {
  const PretrainSetting setting;
  struct Case {
    const char *optimizer, *micro_batch_size, *precision;
    Flags replicas;
  };
  // 10 examples a step: 4 micro-batches (3, 3, 3, 1), 5 even ones, or 10. The last batch of an epoch is smaller, so
  // that some replicas have no micro-batch in it.
  for (const Case& c :
       {Case{"adamw", "3", "f32", {"2", "3", "4"}}, Case{"lamb", "2", "f32", {"2", "4", "5"}},
        Case{"adamw-google", "1", "f32", {"7"}}, Case{"lamb", "2", "bf16", {"3"}}, Case{"adamw", "3", "f16", {"4"}}}) {
    CAPTURE(c.precision);
    const Flags flags = {"--epochs",           "2",
                         "--eval-input",       setting.directory / "held_out.txt",
                         "--micro-batch-size", c.micro_batch_size,
                         "--optimizer",        c.optimizer,
                         "--precision",        c.precision,
                         "--eval-every",       "4",
                         "--overwrite"};
    const Outcome one = setting.run("one", joined(flags, {"--threads", "1"}));
    REQUIRE_MESSAGE(one.code == 0, one.error);
    const int steps = setting.metrics("one").back().at("step");
    for (const std::string& replicas : c.replicas)
      for (const char* threads : {"1", "8"}) {
        CAPTURE(replicas);
        CAPTURE(threads);
        const Outcome outcome = setting.run("run", joined(flags, {"--replicas", replicas, "--threads", threads}));
        REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
        setting.check_same("run", "one", steps);
      }
  }
}

TEST_CASE(
    "activations that are computed again change no bit, in any precision and on replicas, and may change on resuming") {
  const PretrainSetting setting;
  for (const char* precision : {"f32", "bf16", "f16"}) {
    CAPTURE(precision);
    const Flags flags = {"--steps", "4", "--micro-batch-size", "3", "--precision", precision, "--save-every", "2"};
    const Outcome kept = setting.run("kept", joined(flags, {"--overwrite"}));
    REQUIRE_MESSAGE(kept.code == 0, kept.error);
    for (const Flags& how : {Flags{"1"}, Flags{"2"}, Flags{"1", "--replicas", "2"}}) {
      const Outcome again =
          setting.run("again", joined(flags, joined({"--recompute-activations"}, joined(how, {"--overwrite"}))));
      REQUIRE_MESSAGE(again.code == 0, again.error);
      setting.check_same("again", "kept", 4);
    }
    fs::remove_all(setting.directory / "again" / "checkpoint-4");
    const Outcome resumed = setting.run("again", joined(flags, {"--resume"}));
    REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
    setting.check_same("again", "kept", 4);
  }
}

TEST_CASE("a run stopped at any step and resumed with other replicas ends with the same bits") {
  const PretrainSetting setting;
  const Flags flags = {"--epochs",
                       "2",
                       "--eval-input",
                       setting.directory / "held_out.txt",
                       "--save-every",
                       "1",
                       "--keep",
                       "99",
                       "--eval-every",
                       "4",
                       "--micro-batch-size",
                       "2"};
  REQUIRE(setting.run("whole", flags).code == 0);
  const int steps = setting.metrics("whole").back().at("step");
  for (int step = 1; step < steps; ++step) {
    CAPTURE(step);
    const fs::path run = setting.directory / "run";
    fs::remove_all(run);
    fs::copy(setting.directory / "whole", run, fs::copy_options::recursive);
    for (int later = step + 1; later <= steps; ++later) fs::remove_all(run / ("checkpoint-" + std::to_string(later)));
    const Outcome resumed =
        setting.run("run", joined(flags, {"--resume", "--replicas", std::to_string(1 + step % 5), "--threads", "2"}));
    REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
    setting.check_same("run", "whole", steps);
  }
}

TEST_CASE("SIGTERM to a run of several replicas saves once and exits 75, and resuming with one gives the same bits") {
  const PretrainSetting setting;
  const Flags flags = {"--steps", "300", "--eval-input", setting.directory / "held_out.txt", "--micro-batch-size", "3"};
  REQUIRE(setting.run("whole", flags).code == 0);
  const auto has_logged = [&] { return setting.has_logged("run"); };
  const Flags replicas = setting.flags("run", joined(flags, {"--replicas", "3"}));
  REQUIRE(setting.run_and_signal(replicas, SIGTERM, has_logged) == 75);
  int checkpoints = 0;
  for (const auto& entry : fs::directory_iterator(setting.directory / "run"))
    checkpoints += entry.path().filename().string().starts_with("checkpoint-");
  CHECK(checkpoints == 1);
  REQUIRE(setting.run("run", joined(flags, {"--resume"})).code == 0);
  setting.check_same("run", "whole", 300);
}

TEST_CASE("SIGTERM during an evaluation saves the steps before it, and resuming gives the same bits") {
  const PretrainSetting setting;
  support::write_text(setting.directory / "held_out.txt", PretrainSetting::text(4000));
  const Flags flags = {"--steps",      "4", "--eval-input",       setting.directory / "held_out.txt",
                       "--eval-every", "2", "--micro-batch-size", "5"};
  REQUIRE(setting.run("whole", flags).code == 0);
  // The evaluation after step 2 is stopped on two replicas, that after the last step on one.
  for (const auto& [lines, more] : {std::pair(2, Flags{"--replicas", "2"}), {5, Flags{"--resume"}}}) {
    CAPTURE(lines);
    const auto evaluating = [&] { return setting.has_logged("run") && std::ssize(setting.metrics("run")) >= lines; };
    REQUIRE(setting.run_and_signal(setting.flags("run", joined(flags, more)), SIGTERM, evaluating) == 75);
    CHECK(std::ssize(setting.metrics("run")) == lines);  // the evaluation did not come to its end
    CHECK(fs::exists(setting.directory / (lines == 2 ? "run/checkpoint-2" : "run/checkpoint-4")));
  }
  REQUIRE(setting.run("run", joined(flags, {"--resume"})).code == 0);
  CHECK(setting.metrics("run") == setting.metrics("whole"));
  // Not resume.json: the last checkpoint stays that which was saved before the evaluation.
  for (const std::string name : {"/model.safetensors", "/eval_results.json", "/samples.jsonl",
                                 "/checkpoint-4/model.safetensors", "/checkpoint-4/optimizer.safetensors"})
    CHECK_MESSAGE(setting.file("run" + name) == setting.file("whole" + name), name);
}

TEST_CASE("a failure of the first replica ends the run with its own line") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "2"}).code == 0);
  fs::remove(setting.directory / "run/checkpoint-2/MANIFEST.json");
  const Outcome outcome =
      setting.run("run", {"--steps", "2", "--resume", "--micro-batch-size", "5", "--replicas", "2"});
  CHECK(outcome.code == 4);
  CHECK(outcome.error.find("expected one that verifies") != std::string::npos);
}

TEST_CASE("the plan says what each replica computes, and refuses more replicas than micro-batches") {
  const PretrainSetting setting;
  const auto plan = [&](const Flags& more) { return setting.run("run", joined({"--epochs", "2", "--plan"}, more)); };
  CHECK(
      plan({"--micro-batch-size", "2", "--replicas", "2"})
          .out.find("replicas    2, each with 2 to 3 of the micro-batches: 4 to 6 examples per replica, 10 per step") !=
      std::string::npos);
  CHECK(plan({"--micro-batch-size", "5", "--replicas", "2"})
            .out.find("replicas    2, each with 1 of the micro-batches: 5 examples per replica, 10 per step") !=
        std::string::npos);
  CHECK(plan({}).out.find("replicas") == std::string::npos);
  const auto refusal = [&](const Flags& more) {
    const Outcome outcome = plan(more);
    CHECK(outcome.code == 2);
    return outcome.error;
  };
  CHECK(refusal({"--replicas", "4"}) ==
        "error: --replicas: expected at most 1, the micro-batches of a step (10 examples, 10 at once), got 4; hint: "
        "--replicas 1, or --micro-batch-size 3\n");
  CHECK(refusal({"--replicas", "7", "--micro-batch-size", "2"}) ==
        "error: --replicas: expected at most 5, the micro-batches of a step (10 examples, 2 at once), got 7; hint: "
        "--replicas 5, or --micro-batch-size 1\n");
  CHECK(refusal({"--replicas", "10"}) ==
        "error: --replicas: expected at most 1, the micro-batches of a step (10 examples, 10 at once), got 10; hint: "
        "--replicas 1, or --micro-batch-size 1\n");
  CHECK(refusal({"--replicas", "11"}) ==
        "error: --replicas: expected at most 10, the examples of a step, got 11; hint: --replicas 1, or --batch-size "
        "11 with --micro-batch-size 1\n");
}

TEST_CASE("a run of one micro-batch a step is resumed on two replicas as the refusal says") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "2"}).code == 0);
  const Flags resume = {"--resume", "--output", setting.directory / "run", "--steps", "4", "--replicas", "2"};
  CHECK(support::run_program("pretrain", resume).error ==
        "error: --replicas: expected at most 1, the micro-batches of a step (10 examples, 10 at once), got 2; hint: "
        "--replicas 1, or --micro-batch-size 5, with which this run may go on (the last bits of its result change)\n");
  CHECK(support::run_program("pretrain", joined(resume, {"--micro-batch-size", "5"})).code == 0);
  CHECK(
      support::run_program("pretrain", {"--resume", "--output", setting.directory / "run", "--replicas", "11"}).error ==
      "error: --replicas: expected at most 10, the examples of a step, got 11; hint: --replicas 2\n");
}

TEST_CASE(
    "a step of 65536 examples in 256 micro-batches has the bits of one replica on two, in the memory of the plan") {
  const PretrainSetting setting;
  support::write_text(setting.directory / "shape.json",
                      R"({"vocab_size": 57, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
                          "intermediate_size": 32, "max_position_embeddings": 8, "type_vocab_size": 2})");
  std::string records, all;
  for (std::int64_t word = 0; word < 16; ++word)
    io::append_record(records,
                      support::serialize_example({{"input_ids", std::vector<std::int64_t>{2, 5 + word, 4, 3}},
                                                  {"input_mask", std::vector<std::int64_t>(4, 1)},
                                                  {"segment_ids", std::vector<std::int64_t>{0, 0, 0, 1}},
                                                  {"masked_lm_positions", std::vector<std::int64_t>{2}},
                                                  {"masked_lm_ids", std::vector<std::int64_t>{20 + word}},
                                                  {"masked_lm_weights", std::vector<float>{1}},
                                                  {"next_sentence_labels", std::vector<std::int64_t>{word % 2}}}));
  for (int i = 0; i < 65536 / 16; ++i) all += records;
  support::write_text(setting.directory / "many.tfrecord", all);
  for (const std::string replicas : {"1", "2"}) {
    const Outcome outcome = setting.run(
        "run" + replicas, {"--config", setting.directory / "shape.json", "--input", setting.directory / "many.tfrecord",
                           "--max-seq-length", "8", "--batch-size", "65536", "--micro-batch-size", "256", "--steps",
                           "1", "--replicas", replicas, "--threads", "2"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(outcome.out.find("256 micro-batches") != std::string::npos);
    const double planned = std::stod(outcome.out.substr(outcome.out.find("memory      ") + 12)) * 1e6;
    const double measured =
        support::read_json_lines(setting.directory / ("run" + replicas + "/metrics.jsonl")).back().at("memory_bytes");
    INFO(planned << " and " << measured);
    CHECK(measured <= 1.01 * planned);
  }
  setting.check_same("run2", "run1", 1);
}
