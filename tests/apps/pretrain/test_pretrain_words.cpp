// Pre-training on masked words alone.
#include "apps/pretrain/pretrain_setting.h"
#include "io/safetensors.h"
#include "nn/tensor_file.h"
#include "tensor/backends.h"

using namespace bertrand;
using support::Flags;
using support::joined;
using support::Outcome;
using support::PretrainSetting;
namespace fs = std::filesystem;

namespace {

/// The bytes of the tensors that no masked word depends on.
std::string idle_bytes(const fs::path& file) {
  const io::SafetensorsFile tensors(file);
  std::string all;
  for (const char* module : {"bert.pooler.dense.", "cls.seq_relationship."})
    for (const char* part : {"weight", "bias"}) {
      const io::SafetensorsEntry* entry = tensors.find(std::string(module) + part);
      REQUIRE(entry != nullptr);
      all.append(reinterpret_cast<const char*>(entry->bytes.data()), entry->bytes.size());
    }
  return all;
}

/// Documents of one sentence, as of tweets.
std::string single_sentences(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    for (int w = 0; w <= i % 11; ++w) text += std::string(1, static_cast<char>('a' + (3 * i + w) % 26)) + " ";
    text += "\n\n";
  }
  return text;
}

}  // namespace

TEST_CASE("masked words alone are learnt, and nothing is said of next sentences") {
  const PretrainSetting setting;
  const Outcome outcome =
      setting.run("run", {"--epochs", "6", "--no-next-sentence", "--eval-input", setting.directory / "held_out.txt"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.error.empty());
  CHECK(outcome.out.find("  frozen      pooler, nsp: ") != std::string::npos);
  std::vector<nlohmann::json> steps, evaluations;
  for (const auto& line : setting.metrics("run")) (line.contains("loss") ? steps : evaluations).push_back(line);
  CHECK(steps.back().at("loss") < steps.front().at("loss").get<double>() - 0.1);
  for (const auto& line : steps) CHECK(line.at("masked_lm_loss") == line.at("loss"));
  for (const char* key : {"eval_loss", "eval_masked_lm_loss", "eval_masked_lm_accuracy"})
    CHECK_MESSAGE(evaluations.back().contains(key), key);
  CHECK_FALSE(support::read_json_lines(setting.directory / "run/samples.jsonl").empty());
  for (const auto& entry : fs::directory_iterator(setting.directory / "run"))
    if (entry.is_regular_file())
      CHECK_MESSAGE(support::read_text(entry.path()).find("next_sentence") == std::string::npos, entry.path().string());
  const auto config = nlohmann::json::parse(setting.file("run/run_config.json"));
  CHECK(config.at("settings").at("no-next-sentence") == true);
  CHECK(nlohmann::json::parse(setting.file("run/config.json")).at("architectures").at(0) == "BertForPreTraining");
}

TEST_CASE("on records the losses of words are those that they have beside next sentences, to the bit") {
  const PretrainSetting setting;
  const std::string records = setting.directory / "r.tfrecord";
  REQUIRE(support::run_program("prepare", {"records", "--input", setting.directory / "text.txt", "--vocab-file",
                                           setting.directory / "vocab.txt", "--output", records, "--max-seq-length",
                                           "24", "--max-predictions-per-seq", "4"})
              .code == 0);
  const Flags flags = {"--steps",         "3", "--input",      records, "--eval-input", records,
                       "--learning-rate", "0", "--eval-every", "3"};
  REQUIRE(setting.run("both", flags).code == 0);
  const Outcome outcome = setting.run("words", joined(flags, {"--no-next-sentence"}));
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const auto both = setting.metrics("both"), words = setting.metrics("words");
  REQUIRE(words.size() == both.size());
  for (std::size_t i = 0; i < words.size(); ++i)
    for (const char* key : {"masked_lm_loss", "eval_masked_lm_loss", "eval_masked_lm_accuracy"})
      if (both[i].contains(key)) CHECK(words[i].at(key) == both[i].at(key));
}

TEST_CASE("the pooler and the head of next sentences go on later with the bits that they had") {
  const PretrainSetting setting;
  REQUIRE(setting.run("one", {"--steps", "4"}).code == 0);
  const std::string before = idle_bytes(setting.directory / "one/model.safetensors");
  for (const Flags& how : {Flags{"adamw-google", "f32"}, {"lamb", "f32"}, {"lamb-decayed", "bf16"}, {"adamw", "f16"}}) {
    CAPTURE(how);
    Flags flags = setting.flags("two", {"--steps", "3", "--no-next-sentence", "--optimizer", how[0], "--precision",
                                        how[1], "--weight-decay", "0.1", "--overwrite"});
    flags[0] = "--init";
    flags[1] = setting.directory / "one";
    const Outcome outcome = support::run_program("pretrain", flags);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(idle_bytes(setting.directory / "two/model.safetensors") == before);
    CHECK(setting.file("two/model.safetensors") != setting.file("one/model.safetensors"));
    const io::SafetensorsFile moments(setting.directory / "two/checkpoint-3/optimizer.safetensors");
    for (const io::SafetensorsEntry& entry : moments.entries())
      CHECK_MESSAGE((entry.name.find("pooler") == std::string::npos && entry.name.find("seq_rel") == std::string::npos),
                    entry.name);
  }
  Flags flags = setting.flags("three", {"--steps", "1"});
  flags[0] = "--init";
  flags[1] = setting.directory / "two";
  const Outcome refused = support::run_program("pretrain", joined(flags, {"--keep-moments"}));
  CHECK(refused.code == 4);
  CHECK_MESSAGE(refused.error.find("pooler.dense.weight\": expected one of shape [16, 16], got none; hint: the run of "
                                   "--init did not train it: ") != std::string::npos,
                refused.error);
  REQUIRE(support::run_program("pretrain", flags).code == 0);
  CHECK(idle_bytes(setting.directory / "three/model.safetensors") != before);
}

TEST_CASE("strict takes a model without pooler and head of next sentences for masked words alone") {
  const PretrainSetting setting;
  REQUIRE(setting.run("one", {"--steps", "1"}).code == 0);
  const io::SafetensorsFile whole(setting.directory / "one/model.safetensors");
  const auto backend = open_cpu({.threads = 1});
  std::vector<nn::NamedTensor> tensors;
  for (const io::SafetensorsEntry& entry : whole.entries()) {
    if (entry.name.find("pooler") != std::string::npos || entry.name.find("seq_rel") != std::string::npos) continue;
    tensors.push_back({entry.name, Tensor(Shape(entry.dims), DType::f32, *backend)});
    backend->upload(entry.bytes.data(), tensors.back().value);
  }
  const auto write = [&] {
    io::FileWriter out(io::Files::system(), setting.directory / "one/model.safetensors");
    nn::write_tensors(out, tensors);
    out.finish();
  };
  const auto start = [&](const Flags& more) {
    Flags flags = setting.flags("two", joined({"--steps", "1", "--strict", "--overwrite"}, more));
    flags[0] = "--init";
    flags[1] = setting.directory / "one";
    return support::run_program("pretrain", flags);
  };
  write();
  const Outcome words = start({"--no-next-sentence"});
  CHECK_MESSAGE(words.code == 0, words.error);
  CHECK_MESSAGE(words.out.find("4 missing") != std::string::npos, words.out);
  CHECK(start({}).code == 4);
  std::erase_if(tensors, [](const nn::NamedTensor& tensor) { return tensor.name == "cls.predictions.bias"; });
  write();
  const Outcome less = start({"--no-next-sentence"});
  CHECK(less.code == 4);
  CHECK_MESSAGE(less.error.ends_with("--strict: expected every tensor to fit, got 1 missing: cls.predictions.bias\n"),
                less.error);
}

TEST_CASE("masked words alone have the bits of one replica on two, with activations computed again, and resumed") {
  const PretrainSetting setting;
  for (const char* precision : {"f32", "bf16"}) {
    CAPTURE(precision);
    const Flags flags = {"--steps",
                         "4",
                         "--optimizer",
                         "lamb",
                         "--precision",
                         precision,
                         "--eval-input",
                         setting.directory / "held_out.txt",
                         "--save-every",
                         "2",
                         "--micro-batch-size",
                         "3",
                         "--no-next-sentence",
                         "--overwrite"};
    const Outcome one = setting.run("one", joined(flags, {"--threads", "1"}));
    REQUIRE_MESSAGE(one.code == 0, one.error);
    for (const Flags& how : {Flags{"--replicas", "2"}, Flags{"--recompute-activations", "1"}}) {
      const Outcome outcome = setting.run("run", joined(flags, how));
      REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
      setting.check_same("run", "one", 4);
    }
    fs::remove_all(setting.directory / "run/checkpoint-4");
    const Outcome resumed = support::run_program("pretrain", {"--resume", "--output", setting.directory / "run"});
    REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
    setting.check_same("run", "one", 4);
  }
}

TEST_CASE("a run is not resumed with next sentences if it learnt none, nor without them if it did") {
  const PretrainSetting setting;
  REQUIRE(setting.run("words", {"--steps", "2", "--no-next-sentence"}).code == 0);
  REQUIRE(setting.run("both", {"--steps", "2"}).code == 0);
  for (const auto& [run, flag, change] :
       {std::tuple("words", "--no-next-sentence=false", "--no-next-sentence was true, now false"),
        {"both", "--no-next-sentence", "--no-next-sentence was false, now true"}}) {
    CAPTURE(run);
    const Outcome refused =
        support::run_program("pretrain", {"--resume", "--output", setting.directory / run, "--steps", "3", flag});
    CHECK(refused.code == 2);
    CHECK_MESSAGE(refused.error.find(change) != std::string::npos, refused.error);
  }
}

TEST_CASE("documents of one sentence, and a single document, train without a warning, also as a corpus") {
  const PretrainSetting setting;
  support::write_text(setting.directory / "tweets.txt", single_sentences(60));
  std::string lines = single_sentences(60);
  std::erase(lines, '\n');
  support::write_text(setting.directory / "one.txt", lines + "\n");  // a sentence of many examples
  for (const std::string name : {"tweets", "one"}) {
    CAPTURE(name);
    REQUIRE(support::run_program("prepare", {"corpus", "--vocab-file", setting.directory / "vocab.txt", "--input",
                                             setting.directory / (name + ".txt"), "--output", setting.directory / name})
                .code == 0);
    const Flags flags = {"--steps", "3", "--batch-size", "4", "--no-next-sentence", "--input"};
    const Outcome text = setting.run(name + "_text", joined(flags, {setting.directory / (name + ".txt")}));
    REQUIRE_MESSAGE(text.code == 0, text.error);
    CHECK(text.error.empty());
    const Outcome corpus = setting.run(name + "_corpus", joined(flags, {setting.directory / name}));
    REQUIRE_MESSAGE(corpus.code == 0, corpus.error);
    CHECK(corpus.error.empty());
    CHECK(setting.file(name + "_text/model.safetensors") == setting.file(name + "_corpus/model.safetensors"));
  }
  const Outcome plan = setting.run("plan", {"--steps", "1", "--plan", "--no-next-sentence", "--batch-size", "4",
                                            "--input", setting.directory / "tweets.txt"});
  CHECK_MESSAGE(plan.out.find("60 examples, ") != std::string::npos, plan.out);  // each sentence once
  const Outcome pairs = setting.run("pairs", {"--steps", "1", "--plan", "--input", setting.directory / "one.txt"});
  CHECK(pairs.code == 3);
  CHECK(pairs.error.find("documents: expected at least 2, got 1") != std::string::npos);
}

TEST_CASE("the predicted memory of masked words alone is that of a dry run and bounds the measured one") {
  const PretrainSetting setting;
  Flags flags = setting.flags("run", {"--steps", "8", "--micro-batch-size", "5", "--no-next-sentence"});
  flags[1] = "tiny";
  const Outcome dry = support::run_program("pretrain", joined(flags, {"--dry-run"}));
  CHECK_MESSAGE(dry.code == 0, dry.error);
  const Outcome outcome = support::run_program("pretrain", flags);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const double predicted = std::stod(outcome.out.substr(outcome.out.find("memory      ") + 12)) * 1e6;
  const double measured = support::read_json_lines(setting.directory / "run/metrics.jsonl").back().at("memory_bytes");
  CHECK(predicted == doctest::Approx(measured).epsilon(0.05));
}

TEST_CASE("a model with one kind of token takes masked words alone") {
  const PretrainSetting setting;
  std::string config = setting.file("config.json");
  const std::string key = "\"type_vocab_size\": ";
  config.replace(config.find(key) + key.size(), 1, "1");
  support::write_text(setting.directory / "config.json", config);
  const Outcome both = setting.run("both", {"--steps", "1"});
  CHECK(both.code == 4);
  CHECK(both.error.ends_with("one for each sentence, got 1; hint: --no-next-sentence needs one\n"));
  const Outcome outcome = setting.run("words", {"--steps", "1", "--no-next-sentence"});
  CHECK_MESSAGE(outcome.code == 0, outcome.error);
  const fs::path records = setting.directory / "a.tfrecord";  // whose pairs have two kinds
  REQUIRE(
      support::run_program("prepare", {"records", "--vocab-file", setting.directory / "vocab.txt", "--input",
                                       setting.directory / "text.txt", "--output", records, "--max-seq-length", "24"})
          .code == 0);
  const Outcome pairs = setting.run("pairs", {"--steps", "1", "--no-next-sentence", "--input", records});
  CHECK(pairs.code == 4);
  CHECK(pairs.error.ends_with("one for each sentence, got 1\n"));
}
