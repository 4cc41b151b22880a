#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/pretrain/pretrain_setting.h"
#include "bert/directory/config_file.h"
#include "bert/directory/model_directory.h"
#include "bert/network/heads.h"
#include "io/tfrecord.h"
#include "support/tf_example.h"
#include "tensor/backends.h"

using namespace bertrand;
using support::Outcome;
using support::PretrainSetting;

namespace {

/// One record as Google's script writes it: padded to 12 tokens and 3 predictions.
data::Features record() {
  return {{"input_ids", std::vector<std::int64_t>{2, 5, 4, 3, 7, 9, 3, 0, 0, 0, 0, 0}},
          {"input_mask", std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0}},
          {"segment_ids", std::vector<std::int64_t>{0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0}},
          {"masked_lm_positions", std::vector<std::int64_t>{2, 4, 0}},
          {"masked_lm_ids", std::vector<std::int64_t>{8, 7, 0}},
          {"masked_lm_weights", std::vector<float>{1, 1, 0}},
          {"next_sentence_labels", std::vector<std::int64_t>{1}}};
}

void write_records(const std::filesystem::path& file, const std::vector<data::Features>& records) {
  std::string framed;
  for (const auto& features : records) io::append_record(framed, support::serialize_example(features));
  support::write_text(file, framed);
}

/// A model directory of the setting's shape with the largest number there is.
void write_poisoned_model(const PretrainSetting& setting, const std::string& parameter, std::size_t element) {
  const auto backend = open_cpu({.threads = 1});
  const bert::Config config = bert::read_config_file(setting.directory / "config.json", bert::UnknownKeys::refuse);
  bert::ForPretraining model(config);
  const nn::ParameterSet parameters(model, *backend);
  parameters.value(*parameters.find(parameter)).span<float>()[element] = std::numeric_limits<float>::max();
  std::filesystem::create_directories(setting.directory / "poisoned");
  bert::write_directory(io::Files::system(), setting.directory / "poisoned",
                        {.config = config, .vocabulary = setting.file("vocab.txt"), .tokenizer = {}}, parameters);
}

}  // namespace

TEST_CASE("pre-training on text learns, evaluates on held-out text and writes its results") {
  const PretrainSetting setting;
  const Outcome outcome = setting.run("run", {"--epochs", "6", "--eval-input", setting.directory / "held_out.txt"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  std::vector<nlohmann::json> steps, evaluations;
  for (const auto& line : setting.metrics("run")) (line.contains("loss") ? steps : evaluations).push_back(line);
  CHECK(evaluations.size() == 6);  // one an epoch
  CHECK(steps.back().at("loss") < steps.front().at("loss").get<double>() - 0.2);
  CHECK(steps.back().at("epoch") == 6.0);
  for (const char* key : {"eval_loss", "eval_masked_lm_loss", "eval_masked_lm_accuracy", "eval_next_sentence_loss",
                          "eval_next_sentence_accuracy"})
    CHECK_MESSAGE(evaluations.back().contains(key), key);
  const auto results = nlohmann::json::parse(setting.file("run/eval_results.json"));
  CHECK(results.at("eval_loss") == evaluations.back().at("eval_loss"));
  CHECK(setting.file("run/eval_results.txt").starts_with("eval_loss = "));
  const auto config = nlohmann::json::parse(setting.file("run/run_config.json"));
  CHECK(config.at("settings").at("seed") == 42);
  CHECK(config.at("replicas") == 1);
  const auto command = config.at("command").get<std::vector<std::string>>();
  CHECK(command.front().ends_with("pretrain"));
  CHECK(std::ranges::find(command, (setting.directory / "run").string()) != command.end());
}

TEST_CASE("the losses of a line are the means of the steps since the line before, and --quiet prints no line") {
  const PretrainSetting setting;
  REQUIRE(setting.run("each", {"--steps", "7"}).code == 0);
  const Outcome quiet = setting.run("thirds", {"--steps", "7", "--log-every", "3", "--quiet"});
  REQUIRE(quiet.code == 0);
  CHECK(quiet.out == "report: " + (setting.directory / "thirds/report.html").string() + "\n");
  const auto each = setting.metrics("each"), thirds = setting.metrics("thirds");
  REQUIRE(each.size() == 7);
  REQUIRE(thirds.size() == 3);  // of three steps, three and one
  for (const char* key : {"loss", "masked_lm_loss", "next_sentence_loss"}) {
    const auto of = [&](std::size_t step) { return each[step - 1].at(key).get<double>(); };
    CHECK(thirds[0].at(key).get<double>() == doctest::Approx((of(1) + of(2) + of(3)) / 3).epsilon(1e-6));
    CHECK(thirds[1].at(key).get<double>() == doctest::Approx((of(4) + of(5) + of(6)) / 3).epsilon(1e-6));
    CHECK(thirds[2].at(key) == each[6].at(key));
  }
  CHECK(thirds[0].at("learning_rate") == each[2].at("learning_rate"));
}

TEST_CASE("--plan says what a run would do and does nothing") {
  const PretrainSetting setting;
  const Outcome outcome = setting.run("run", {"--epochs", "2", "--micro-batch-size", "4", "--plan"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("10 examples in 3 micro-batches of at most 4") != std::string::npos);
  CHECK(outcome.out.find("predicted") != std::string::npos);
  CHECK(outcome.out.find("saves       every 1000 steps, and 10 minutes after the save before, and at the end\n") !=
        std::string::npos);
  CHECK(outcome.out.find("sharing     by at most 3 replicas, ") != std::string::npos);
  CHECK(outcome.out.find("patience") == std::string::npos);  // none was asked for
  CHECK_FALSE(std::filesystem::exists(setting.directory / "run"));
  const Outcome alone = setting.run("run", {"--steps", "2", "--save-every-minutes", "0", "--plan"});
  CHECK(alone.out.find("saves       every 1000 steps, and at the end\n") != std::string::npos);
  CHECK(alone.out.find("sharing     by at most 1 replica, ") != std::string::npos);
}

TEST_CASE("the predicted memory is within a twentieth of the measured peak") {
  const PretrainSetting setting;
  for (const auto& [size, precision] : {std::pair{"10", "f32"}, {"3", "f32"}, {"10", "bf16"}, {"3", "f16"}}) {
    CAPTURE(size);
    CAPTURE(precision);
    std::vector<std::string> flags =
        setting.flags("run", {"--steps", "8", "--micro-batch-size", size, "--precision", precision, "--overwrite"});
    flags[1] = "tiny";
    const Outcome outcome = support::run_program("pretrain", flags);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    const std::size_t at = outcome.out.find("memory      ") + 12;
    const double predicted = std::stod(outcome.out.substr(at)) * 1e6;
    const double measured = support::read_json_lines(setting.directory / "run/metrics.jsonl").back().at("memory_bytes");
    CHECK(predicted == doctest::Approx(measured).epsilon(0.05));
  }
}

TEST_CASE("records are stripped of their padding and train as they are") {
  const PretrainSetting setting;
  write_records(setting.directory / "a.tfrecord", std::vector<data::Features>(7, record()));
  const Outcome outcome =
      setting.run("run", {"--steps", "2", "--input", setting.directory / "text.txt", setting.directory / "a.tfrecord"});
  CHECK(outcome.code != 0);  // text and records together
  CHECK(outcome.error.find("expected files of one kind, got ") != std::string::npos);
  CHECK(outcome.error.find("text.txt (text) and ") != std::string::npos);
  CHECK(outcome.error.find("a.tfrecord (TFRecord)\n") != std::string::npos);
  std::vector<std::string> flags = setting.flags("run", {"--steps", "2"});
  for (std::string& flag : flags)
    if (flag.ends_with("text.txt")) flag = setting.directory / "a.tfrecord";
  const Outcome trained = support::run_program("pretrain", flags);
  REQUIRE_MESSAGE(trained.code == 0, trained.error);
  CHECK(trained.out.find("7 examples, 1 step") != std::string::npos);
  CHECK(trained.out.find("about 49 tokens") != std::string::npos);
}

TEST_CASE("an empty file is of the kind of the others, whatever its name") {
  const PretrainSetting setting;
  support::write_text(setting.directory / "empty.tfrecord", "");
  const std::string text = setting.directory / "text.txt";
  REQUIRE(setting.run("plain", {"--steps", "2"}).code == 0);
  const Outcome outcome = setting.run("run", {"--steps", "2", "--input", setting.directory / "empty.tfrecord", text});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(setting.file("run/model.safetensors") == setting.file("plain/model.safetensors"));
}

TEST_CASE("flags of text that records do not follow are warned of, and so is what has less masked, or nothing") {
  const PretrainSetting setting;
  const std::string file = setting.directory / "r.tfrecord", unmasked = setting.directory / "u.tfrecord";
  for (const auto& [output, masked] : {std::pair{file, "4"}, {unmasked, "0"}})
    REQUIRE(support::run_program("prepare", {"records", "--input", setting.directory / "text.txt", "--vocab-file",
                                             setting.directory / "vocab.txt", "--output", output, "--max-seq-length",
                                             "24", "--max-predictions-per-seq", masked})
                .code == 0);
  const auto plan = [&](const support::Flags& more) {
    return setting.run("run", support::joined({"--plan", "--steps", "2"}, more)).error;
  };
  CHECK(
      plan({"--input", file, "--max-seq-length", "16", "--whole-word-mask"})
          .ends_with("24 tokens are read as they were made; for text alone: --whole-word-mask, --max-seq-length 16\n"));
  CHECK(plan({"--input", file}).empty());
  CHECK(plan({"--input", unmasked}).starts_with("warning: " + unmasked + ": no record has a masked token, so "));
  CHECK(plan({"--max-predictions-per-seq", "2"}) ==
        "warning: --max-predictions-per-seq: 2 of an example of 24 tokens, of which --masked-lm-prob 0.15 would take "
        "4\n");
  CHECK(plan({}).empty());
  CHECK(plan({"--micro-batch-size", "10"}).empty());  // all of a step
  CHECK(plan({"--micro-batch-size", "11"}).starts_with("warning: --micro-batch-size: a step has 10 examples, "));
}

TEST_CASE("text of a paragraph a line is warned of") {
  const PretrainSetting setting;
  std::string paragraphs;
  for (int line = 0; line < 6; ++line) paragraphs += "a b c d e f g h i j k l m n\nb c d e f g h i j k l m n o\n\n";
  support::write_text(setting.directory / "paragraphs.txt", paragraphs);
  const auto said = [&](const char* text) {
    const auto outcome = setting.run("run", {"--input", setting.directory / text, "--steps", "1", "--overwrite"});
    CHECK(outcome.code == 0);
    return outcome.error;
  };
  CHECK(said("paragraphs.txt")
            .find("paragraphs.txt: a line has 14 tokens on average, more than half of --max-seq-length 24: ") !=
        std::string::npos);
  CHECK(said("text.txt").find("on average") == std::string::npos);
}

TEST_CASE("runs of all seeds are judged on the same examples of held-out text") {
  const PretrainSetting setting;
  REQUIRE(setting.run("start", {"--steps", "1"}).code == 0);
  const auto loss = [&](const char* seed) {
    const auto outcome = support::run_program(
        "pretrain", {"--init", setting.directory / "start", "--input", setting.directory / "text.txt", "--eval-input",
                     setting.directory / "held_out.txt", "--max-seq-length", "24", "--batch-size", "10",
                     "--learning-rate", "0", "--steps", "1", "--seed", seed, "--output", setting.directory / seed});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    return nlohmann::json::parse(setting.file(seed + std::string("/eval_results.json"))).at("eval_loss").get<double>();
  };
  CHECK(loss("1") == loss("2"));
}

TEST_CASE("records are known by what they begin with, and what is neither records nor text is refused") {
  const PretrainSetting setting;
  const auto run = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> flags = setting.flags("run", {"--steps", "2", "--overwrite"});
    flags.insert(flags.end(), more.begin(), more.end());
    for (std::string& flag : flags)
      if (flag.ends_with("text.txt")) flag = setting.directory / name;
    return support::run_program("pretrain", flags);
  };
  write_records(setting.directory / "tf_examples.tf_record", std::vector<data::Features>(7, record()));
  const Outcome trained = run("tf_examples.tf_record", {});
  REQUIRE_MESSAGE(trained.code == 0, trained.error);
  CHECK(trained.out.find("7 examples, 1 step") != std::string::npos);

  support::write_text(setting.directory / "weights", setting.file("run/model.safetensors"));
  const Outcome weights = run("weights", {});
  CHECK(weights.code == 3);
  CHECK(weights.error ==
        "error: " + (setting.directory / "weights").string() + ":1: expected text in UTF-8, got a NUL byte\n");
  support::write_text(setting.directory / "empty", "");
  CHECK(run("empty", {}).error.find("empty: text: expected sentences, a line each, got none") != std::string::npos);

  std::string bad = setting.file("tf_examples.tf_record");
  bad[0] ^= 1;
  support::write_text(setting.directory / "bad.tfrecord", bad);
  CHECK(run("bad.tfrecord", {}).error.find("bad.tfrecord@0: record length crc: expected 0x") != std::string::npos);
}

TEST_CASE("records in many files train as in one, and what is corrupt is skipped and counted when asked") {
  const PretrainSetting setting;
  std::vector<data::Features> all;
  for (std::int64_t i = 0; i < 25; ++i) {
    all.push_back(record());
    std::get<std::vector<std::int64_t>>(all.back().at("input_ids"))[1] = 5 + i;
  }
  write_records(setting.directory / "all.tfrecord", all);
  write_records(setting.directory / "x.tfrecord", {all.begin(), all.begin() + 11});
  write_records(setting.directory / "y.tfrecord", {all.begin() + 11, all.end()});
  const auto train = [&](const std::string& output, const std::vector<std::string>& inputs) {
    std::vector<std::string> flags = setting.flags(output, {"--epochs", "3", "--on-corrupt", "skip"});
    const auto text = std::ranges::find_if(flags, [](const std::string& flag) { return flag.ends_with("text.txt"); });
    std::vector<std::string> files;
    for (const std::string& input : inputs) files.push_back(setting.directory / input);
    flags.insert(flags.erase(text), files.begin(), files.end());
    return support::run_program("pretrain", flags);
  };
  CHECK(train("one", {"all.tfrecord"}).code == 0);
  CHECK(train("two", {"x.tfrecord", "y.tfrecord"}).code == 0);
  CHECK(setting.metrics("one") == setting.metrics("two"));
  CHECK(setting.file("one/model.safetensors") == setting.file("two/model.safetensors"));

  std::string bytes = setting.file("y.tfrecord");
  bytes[40] ^= 1;
  support::write_text(setting.directory / "y.tfrecord", bytes);
  const Outcome skipped = train("three", {"x.tfrecord", "y.tfrecord"});
  CHECK(skipped.code == 0);
  CHECK(skipped.error.find("y.tfrecord@0: record data crc: expected 0x") != std::string::npos);
  CHECK(skipped.error.find("; skipped 1 corrupt place of this file\n") != std::string::npos);
  CHECK(skipped.out.find("24 examples, 3 steps") != std::string::npos);
}

TEST_CASE("records in which nothing is masked train and evaluate on the next sentence alone") {
  const PretrainSetting setting;
  data::Features unmasked = record();
  unmasked["masked_lm_weights"] = std::vector<float>{0, 0, 0};
  write_records(setting.directory / "unmasked.tfrecord", std::vector(12, unmasked));
  std::vector<std::string> flags =
      setting.flags("run", {"--steps", "2", "--eval-input", setting.directory / "unmasked.tfrecord"});
  for (std::string& flag : flags)
    if (flag.ends_with("text.txt")) flag = setting.directory / "unmasked.tfrecord";
  REQUIRE(support::run_program("pretrain", flags).code == 0);
  const auto metrics = setting.metrics("run");
  CHECK(metrics.front().at("masked_lm_loss") == 0);
  CHECK(metrics.front().at("next_sentence_loss") > 0);
  CHECK(metrics.back().at("eval_masked_lm_loss") == 0);
  CHECK(metrics.back().at("eval_next_sentence_loss") > 0);
}

TEST_CASE("a record that cannot be is named by file and offset") {
  const PretrainSetting setting;
  const auto refusal = [&](const std::string& feature, const data::Feature& value) {
    data::Features bad = record();
    if (std::holds_alternative<std::monostate>(value)) bad.erase(feature);
    else bad[feature] = value;
    write_records(setting.directory / "bad.tfrecord", {record(), bad});
    std::vector<std::string> flags = setting.flags("run", {"--steps", "2"});
    for (std::string& flag : flags)
      if (flag.ends_with("text.txt")) flag = setting.directory / "bad.tfrecord";
    const Outcome outcome = support::run_program("pretrain", flags);
    CHECK(outcome.code == 3);
    const std::size_t offset = outcome.error.find("bad.tfrecord@");
    REQUIRE(offset != std::string::npos);
    CHECK(outcome.error.substr(offset).find("bad.tfrecord@0:") == std::string::npos);
    return outcome.error.substr(outcome.error.find(": ", offset) + 2);
  };
  using Integers = std::vector<std::int64_t>;
  CHECK(refusal("input_mask", {}).starts_with("feature input_mask: expected an int64 list, got none"));
  CHECK(refusal("masked_lm_weights", Integers{1, 1, 0}) ==
        "feature masked_lm_weights: expected a float list, got another kind\n");
  CHECK(refusal("segment_ids", Integers{0, 0}) == "segment_ids: expected 12 values, got 2\n");
  CHECK(refusal("input_ids", Integers{2, 99, 4, 3, 7, 9, 3, 0, 0, 0, 0, 0}) == "input_ids: expected 0 to 56, got 99\n");
  CHECK(refusal("masked_lm_positions", Integers{2, 11, 0}) == "masked_lm_positions: expected 0 to 6, got 11\n");
  CHECK(refusal("next_sentence_labels", Integers{2}) == "next_sentence_labels: expected 0 to 1, got 2\n");
}

TEST_CASE("a loss that is not finite ends the run with 6 and names step, op and tensor") {
  const PretrainSetting setting;
  write_poisoned_model(setting, "bert.encoder.layer.1.intermediate.dense.weight", 3);
  std::vector<std::string> flags = setting.flags("run", {"--steps", "2"});
  flags[0] = "--init";
  flags[1] = setting.directory / "poisoned";
  const Outcome outcome = support::run_program("pretrain", flags);
  CHECK(outcome.code == 6);
  CHECK(outcome.error.starts_with("error: step 1: op linear: forward: element "));
}

TEST_CASE("a weight that is not finite is never saved, though no loss depends on it") {
  const PretrainSetting setting;
  write_poisoned_model(setting, "bert.embeddings.position_embeddings.weight", 32 * 16 - 1);  // of a position never used
  // Decay makes it too large.
  std::vector<std::string> flags =
      setting.flags("run", {"--steps", "1", "--learning-rate", "1000", "--warmup-steps", "0"});
  flags[0] = "--init";
  flags[1] = setting.directory / "poisoned";
  const Outcome outcome = support::run_program("pretrain", flags);
  CHECK(outcome.code == 6);
  CHECK(outcome.error.find("model.safetensors: tensor \"bert.embeddings.position_embeddings.weight\": expected finite "
                           "weights, got some that "
                           "are not; hint: a lower learning rate\n") != std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator(setting.directory / "run")) {
    CHECK_FALSE(entry.path().filename().string().starts_with("checkpoint"));
    CHECK(entry.path().filename() != "model.safetensors");
  }
}

TEST_CASE("a disk without room for one checkpoint is told before step 1") {
  const PretrainSetting setting;
  const std::string disk = setting.directory / "disk";
  std::filesystem::create_directory(disk);
  if (std::system(("mount -t tmpfs -o size=80k none " + disk + " 2>/dev/null").c_str()) != 0) {
    MESSAGE("SKIPPED: a small disk cannot be mounted here");
    return;
  }
  const Outcome outcome = setting.run("disk/run", {"--steps", "3"});
  CHECK(std::system(("umount " + disk).c_str()) == 0);
  CHECK(outcome.code == 5);
  CHECK(outcome.error.find("checkpoint: No space left on device: needed ") != std::string::npos);
  CHECK(outcome.out.find("step 1/") == std::string::npos);
}

TEST_CASE("what does not fit together is refused in one line before anything is written") {
  const PretrainSetting setting;
  const auto refusal = [&](const std::vector<std::string>& more, int code) {
    const Outcome outcome = setting.run("run", more);
    CHECK(outcome.code == code);
    CHECK_FALSE(std::filesystem::exists(setting.directory / "run"));
    return outcome.error;
  };
  CHECK(refusal({}, 2) == "error: --steps, --epochs: expected one of them, got none\n");
  CHECK(refusal({"--stpes", "3"}, 2) == "error: unknown option --stpes; did you mean --steps?\n");
  CHECK(refusal({"--steps", "3", "--seed", "-1"}, 2).find("--seed: expected a whole number") != std::string::npos);
  CHECK(refusal({"--steps", "3", "--device", "cpu,cpu"}, 2).find("twice") != std::string::npos);
  CHECK(refusal({"--steps", "3", "--eval-input", "/nonexistent.txt"}, 3) ==
        "error: /nonexistent.txt: input: expected a file, got nothing there\n");
  CHECK(refusal({"--steps", "3", "--init", "/nonexistent"}, 2).find("--init") != std::string::npos);
  CHECK(refusal({"--steps", "4611686018427387904"}, 2).find("--steps: expected a whole number") != std::string::npos);
  CHECK(refusal({"--steps", "3", "--eval-input", "/dev/null"}, 3) ==
        "error: /dev/null: input: expected a regular file, which is read twice, got a pipe or device; hint: put it "
        "into a "
        "file\n");
  CHECK(refusal({"--steps", "3", "--profile", setting.directory / "text.txt"}, 2).find("--profile: expected another") !=
        std::string::npos);
  support::write_text(setting.directory / "vocab.txt", setting.file("vocab.txt") + "more\n");
  CHECK(refusal({"--steps", "3"}, 4).find("expected 57 tokens (vocab_size of ") != std::string::npos);
}

TEST_CASE("a model of fewer positions than two words and their separators take is refused") {
  const PretrainSetting setting;
  for (const int positions : {1, 3, 4, 5}) {
    CAPTURE(positions);
    std::string config = support::read_text(setting.directory / "config.json");
    const std::string key = "\"max_position_embeddings\": ";
    config.replace(config.find(key) + key.size(), 2, std::to_string(positions));
    support::write_text(setting.directory / "short.json", config);
    const Outcome outcome =
        support::run_program("pretrain", {"--config", setting.directory / "short.json", "--vocab-file",
                                          setting.directory / "vocab.txt", "--input", setting.directory / "text.txt",
                                          "--output", setting.directory / "run", "--overwrite", "--steps", "1"});
    CHECK(outcome.code == (positions < 5 ? 4 : 0));
    if (positions < 5)
      CHECK(outcome.error.find("/short.json: max_position_embeddings: expected at least 5") != std::string::npos);
  }
}
