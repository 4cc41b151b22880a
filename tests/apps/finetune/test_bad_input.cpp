// What users bring that is not as it should be: it is said in one line, and nothing is written or lost.
#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <sstream>

#include "support/small_model.h"

using support::Outcome;
using support::read_text;
using support::run_program;
using support::write_text;
namespace fs = std::filesystem;

namespace {

struct Setting {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_model(directory / "model");
    write_text(directory / "train.csv", support::animals(12));
  }
  std::string at(const std::string& name) const { return directory / name; }
  /// One epoch on train.csv, unless the flags say otherwise.
  Outcome run(const std::vector<std::string>& more) const {
    std::vector<std::string> flags = {
        "--task",   "custom",  "--label-column",   "kind", "--model",   at("model"), "--train",  at("train.csv"),
        "--output", at("run"), "--max-seq-length", "16",   "--threads", "1",         "--epochs", "1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return run_program("finetune", flags);
  }
};

}  // namespace

TEST_CASE("a byte order mark, CRLF and what is no UTF-8 are dropped, counted and reported with the first place") {
  const Setting setting;
  write_text(setting.at("odd.tsv"), "\xEF\xBB\xBFtext\tkind\r\nred fi\xFFsh\tfish\r\ntwo \xC3 birds\tbird\r\n");
  const Outcome outcome = setting.run({"--train", setting.at("odd.tsv")});
  CHECK(outcome.code == 0);
  CHECK(outcome.error ==
        "warning: " + setting.at("odd.tsv") + ":2: text: dropped 2 bytes that are not UTF-8, the first here\n");
  const auto config = nlohmann::json::parse(read_text(setting.at("run/config.json")));
  CHECK(config.at("id2label") == nlohmann::json({{"0", "bird"}, {"1", "fish"}}));
}

TEST_CASE("a directory with tokenizer.json instead of vocab.txt gives the same predictions") {
  const Setting setting;
  const std::vector<std::string> predict = {"--predict", setting.at("train.csv")};
  REQUIRE(setting.run(predict).code == 0);
  const std::string expected = read_text(setting.at("run/predictions.tsv"));

  nlohmann::json json = nlohmann::json::parse(R"({
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}})");
  std::istringstream words(support::kSmallVocabulary);
  int id = 0;
  for (std::string word; std::getline(words, word);) json["model"]["vocab"][word] = id++;
  fs::remove(setting.at("model/vocab.txt"));
  write_text(setting.at("model/tokenizer.json"), json.dump());
  const Outcome outcome = setting.run({"--predict", setting.at("train.csv"), "--overwrite"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(read_text(setting.at("run/predictions.tsv")) == expected);
  CHECK(read_text(setting.at("run/vocab.txt")) == support::kSmallVocabulary);

  json["model"]["vocab"]["more"] = id;
  write_text(setting.at("model/tokenizer.json"), json.dump());
  CHECK(setting.run({"--overwrite"}).error ==
        "error: " + setting.at("model/tokenizer.json") +
            ": vocabulary: expected 15 tokens (vocab_size of config.json), got 16; hint: is it another model's?\n");
}

TEST_CASE("an occupied output directory is told before any input is read, and no failure costs the run in it") {
  const Setting setting;
  REQUIRE(setting.run({}).code == 0);
  const std::string weights = read_text(setting.at("run/model.safetensors"));
  const Outcome occupied = setting.run({"--train", setting.at("none.csv")});
  CHECK(occupied.code == 2);
  CHECK(occupied.error.find("expected no run there, got checkpoint-1; hint: --resume goes on with it") !=
        std::string::npos);
  CHECK(setting.run({"--train", setting.at("none.csv"), "--overwrite"}).code == 3);
  fs::remove(setting.at("model/model.safetensors"));
  CHECK(setting.run({"--overwrite"}).code == 4);
  CHECK(read_text(setting.at("run/model.safetensors")) == weights);
  CHECK(fs::exists(setting.at("run/checkpoint-1/MANIFEST.json")));
}

TEST_CASE("outputs that are not finite end evaluation and prediction with 6") {
  const Setting setting;
  REQUIRE(setting.run({}).code == 0);
  std::string weights = read_text(setting.at("run/model.safetensors"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::uint64_t length = 0;
  std::memcpy(&length, weights.data(), sizeof length);
  const auto header = nlohmann::json::parse(weights.substr(8, length));
  const std::size_t begin = 8 + length + header.at("classifier.bias").at("data_offsets").at(0).get<std::size_t>();
  std::memcpy(weights.data() + begin, &nan, sizeof nan);
  write_text(setting.at("run/model.safetensors"), weights);
  const Outcome outcome =
      run_program("finetune", {"--task", "custom", "--label-column", "kind", "--model", setting.at("run"), "--eval",
                               setting.at("train.csv"), "--output", setting.at("evaluated"), "--max-seq-length", "16"});
  CHECK(outcome.code == 6);
  CHECK(outcome.error ==
        "error: example 0: classifier: expected finite outputs, got nan; hint: are the weights finite?\n");
  CHECK_FALSE(fs::exists(setting.at("evaluated")));
}

TEST_CASE("extract looks at its files before it computes, and never writes over its input") {
  const Setting setting;
  write_text(setting.at("lines.txt"), "red fish\n");
  const auto refusal = [&](const std::string& input, const std::string& output, int code) {
    const Outcome outcome = run_program(
        "extract", {"--model", setting.at("model"), "--input", input, "--output", output, "--max-seq-length", "16"});
    CHECK(outcome.code == code);
    return outcome.error;
  };
  const std::string lines = setting.at("lines.txt");
  CHECK(refusal(setting.at("none.txt"), setting.at("o"), 3) ==
        "error: " + setting.at("none.txt") + ": input: expected a file, got nothing there\n");
  CHECK(refusal(lines, setting.at("model"), 2) ==
        "error: --output: expected a file, got the directory " + setting.at("model") + "\n");
  CHECK(refusal(lines, lines, 2) == "error: --output: expected another file than the input, got " + lines + "\n");
  CHECK(refusal(lines, setting.at("none/o"), 5).find("expected an existing directory") != std::string::npos);
  CHECK(read_text(lines) == "red fish\n");

  const Outcome piped = run_program("extract", {"--model", setting.at("model"), "--input", lines, "--output",
                                                "/dev/stdout", "--max-seq-length", "16", "--layers", "-1"});
  CHECK(piped.code == 0);
  CHECK(nlohmann::json::parse(piped.out).at("linex_index") == 0);
}
