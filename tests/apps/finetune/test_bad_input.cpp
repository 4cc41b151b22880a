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
    const std::vector<std::string> defaults = {
        "--task",   "custom",  "--label-column",   "kind", "--model",   at("model"), "--train",  at("train.csv"),
        "--output", at("run"), "--max-seq-length", "16",   "--threads", "1",         "--epochs", "1"};
    return run_program("finetune", support::with_defaults(defaults, more));
  }
};

}  // namespace

TEST_CASE("a byte order mark, CRLF and what is no UTF-8 are dropped, counted and reported with the first place") {
  const Setting setting;
  write_text(setting.at("odd.tsv"), "\xEF\xBB\xBFtext\tkind\r\nred fi\xFFsh\tfish\r\ntwo \xC3 birds\tbird\r\n");
  const Outcome outcome = setting.run({"--train", setting.at("odd.tsv")});
  CHECK(outcome.code == 0);
  CHECK(outcome.error == "warning: " + setting.at("odd.tsv") +
                             ":2: text: dropped 2 bytes that are not UTF-8, the first one in column 7; hint: iconv "
                             "turns other encodings into UTF-8\n");
  const auto config = nlohmann::json::parse(read_text(setting.at("run/config.json")));
  CHECK(config.at("id2label") == nlohmann::json({{"0", "bird"}, {"1", "fish"}}));
}

TEST_CASE("--validate-only names the bad row if those that are left have too few labels") {
  const Setting setting;
  write_text(setting.at("rows.csv"), "text,kind\nred fish,fish\n,bird\n");
  const Outcome rows = setting.run({"--train", setting.at("rows.csv"), "--validate-only"});
  CHECK(rows.code == 3);
  CHECK(rows.error == "error: " + setting.at("rows.csv") + ":3: text: expected some text, got none\n");
  write_text(setting.at("words.conll"), "red O\nfish O\n\nblue\n");
  const Outcome words =
      run_program("finetune", {"--task", "ner", "--model", setting.at("model"), "--train", setting.at("words.conll"),
                               "--max-seq-length", "16", "--validate-only"});
  CHECK(words.code == 3);
  CHECK(words.error == "error: " + setting.at("words.conll") + ":4: columns: expected 2 as in line 1, got 1\n");
}

TEST_CASE("--validate-only names every bad row of a file that has no other, and those of the others that were read") {
  const Setting setting;
  const std::string some = setting.at("some.csv"), all = setting.at("all.csv"), cut = setting.at("cut.csv");
  write_text(some, "text,kind\nred fish,fish\n,bird\nblue bird,bird\n");
  write_text(all, "text,kind\n,fish\nred bird,\n");
  write_text(cut, "text,kind\nfish\nbird\n");
  const std::string no_text = ": text: expected some text, got none\n";
  const std::string one_cell = ": columns: expected 2 as in line 1, got 1\n";
  const std::string in_some = some + ":3" + no_text, in_cut = cut + ":2" + one_cell + cut + ":3" + one_cell;
  const std::string in_all = all + ":2" + no_text + all + ":3: label: expected one, got an empty cell\n";
  const std::string summary = "error: data: expected rows as they should be, got ";
  const auto said = [&](const std::string& train, const std::string& other_flag, const std::string& other) {
    return setting.run({"--train", train, other_flag, other, "--validate-only"}).error;
  };
  CHECK(said(all, "--eval", all) == in_all + summary + "2 bad ones\n");
  CHECK(said(some, "--eval", all) == in_some + in_all + summary + "3 bad ones\n");
  CHECK(said(some, "--predict", cut) == in_some + in_cut + summary + "3 bad ones\n");
  const std::string other = setting.at("other.csv");  // labels that --train does not have
  write_text(other, "text,kind\nred fish,tree\nblue bird,stone\n");
  const std::string said_of_other = said(some, "--eval", other);
  CHECK(said_of_other.starts_with(in_some + other + ":2: label: "));
  CHECK(said_of_other.ends_with(summary + "3 bad ones\n"));
}

TEST_CASE("a vocabulary that is no UTF-8 is read as Google's programs read it, and that is said") {
  const Setting setting;
  const std::string file = setting.at("model/vocab.txt");
  write_text(file, "[PAD]\xFF" + read_text(file).substr(5));
  const Outcome outcome = setting.run({});
  CHECK(outcome.code == 0);
  CHECK(outcome.error == "warning: " + file +
                             ":1: text: dropped 1 byte that is not UTF-8, the first one in column 6; hint: iconv "
                             "turns other encodings into UTF-8\n");
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
        "error: " + setting.at("model/tokenizer.json") + ": vocabulary: expected 15 tokens (vocab_size of " +
            setting.at("model/config.json") + "), got 16; hint: is it another model's?\n");
}

TEST_CASE("a file with pairs of texts and one without are not read as alike") {
  const Setting setting;
  write_text(setting.at("single.csv"), "sentence1,kind\nred fish,fish\nred bird,bird\n");
  write_text(setting.at("pairs.csv"), "sentence1,sentence2,kind\nred fish,the fish,fish\nred bird,the bird,bird\n");
  const auto refusal = [&](const std::string& train, const std::string& flag, const std::string& other) {
    const Outcome outcome = setting.run({"--train", setting.at(train), flag, setting.at(other)});
    CHECK(outcome.code == 3);
    CHECK_FALSE(fs::exists(setting.at("run")));
    return outcome.error;
  };
  const std::string hint = "; hint: --text-column, --text-pair-column\n";
  CHECK(refusal("pairs.csv", "--eval", "single.csv") == "error: " + setting.at("single.csv") +
                                                            ":1: columns: expected pairs of texts as in " +
                                                            setting.at("pairs.csv") + ", got single texts" + hint);
  CHECK(refusal("single.csv", "--predict", "pairs.csv") ==
        "error: " + setting.at("pairs.csv") + ":1: columns: expected single texts as in " + setting.at("single.csv") +
            ", got pairs of texts" + hint);
  const std::vector<std::string> first_only = {"--train", setting.at("pairs.csv"), "--text-column", "sentence1",
                                               "--eval",  setting.at("single.csv")};
  CHECK(setting.run(first_only).code == 0);
}

TEST_CASE("a model is used only as what it was trained to be") {
  const Setting setting;
  REQUIRE(setting.run({}).code == 0);
  const auto use = [&](const std::string& kind, const std::string& flag) {
    return run_program("finetune", {"--task", "custom", "--label-column", "kind", "--model", setting.at("run"), flag,
                                    setting.at("train.csv"), "--output", setting.at("used"), "--max-seq-length", "16",
                                    "--kind", kind, "--threads", "1"});
  };
  for (const char* flag : {"--predict", "--eval"}) {
    const Outcome outcome = use("multi-label", flag);
    CHECK(outcome.code == 4);
    CHECK(outcome.error == "error: " + setting.at("run/config.json") +
                               ": problem_type: expected multi_label_classification for --kind multi-label, got "
                               "single_label_classification; hint: --kind classification\n");
    CHECK_FALSE(fs::exists(setting.at("used")));
  }
  CHECK(use("classification", "--predict").code == 0);
  CHECK(setting.run({"--model", setting.at("run"), "--output", setting.at("other"), "--kind", "multi-label"}).code ==
        0);
}

TEST_CASE("a model without positions for a piece is a bad model and no bad length") {
  const Setting setting;
  support::write_small_model(setting.at("short"), 1, 2);
  const Outcome outcome =
      run_program("finetune", {"--task", "custom", "--label-column", "kind", "--model", setting.at("short"), "--train",
                               setting.at("train.csv"), "--output", setting.at("run")});
  CHECK(outcome.code == 4);
  CHECK(outcome.error.find("max_position_embeddings: expected at least 3 to read a text, got 2") != std::string::npos);
}

TEST_CASE("a model that is used as it is need not be told its kind again") {
  const Setting setting;
  write_text(setting.at("train.csv"), "text,kind\nred fish,0.5\nblue birds,2.25\none fish,0\n");
  REQUIRE(setting.run({"--kind", "regression"}).code == 0);
  const auto use = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--model",          setting.at("run"),
                                      "--eval",           setting.at("train.csv"),
                                      "--output",         setting.at("used"),
                                      "--task",           "custom",
                                      "--label-column",   "kind",
                                      "--threads",        "1",
                                      "--max-seq-length", "16"};
    flags.insert(flags.end(), more.begin(), more.end());
    return run_program("finetune", flags);
  };
  CHECK(use({"--kind", "classification"}).error.ends_with("got regression; hint: --kind regression\n"));
  CHECK(use({}).code == 0);
  CHECK(nlohmann::json::parse(read_text(setting.at("used/eval_results.json"))).contains("eval_pearson"));
}

TEST_CASE("a directory where a file is expected is bad data or a bad model, as the file would be") {
  const Setting setting;
  fs::create_directory(setting.at("d.tsv"));
  const Outcome table = setting.run({"--train", setting.at("d.tsv")});
  CHECK(table.code == 3);
  CHECK(table.error == "error: " + setting.at("d.tsv") + ": rows: expected a file, got a directory\n");
  for (const std::string name : {"model/vocab.txt", "model/model.safetensors"}) {
    fs::remove(setting.at(name));
    fs::create_directory(setting.at(name));
    const Outcome outcome = setting.run({});
    CHECK(outcome.code == 4);
    CHECK(outcome.error.starts_with("error: " + setting.at(name) + ": "));
    CHECK(outcome.error.ends_with(": expected a file, got a directory\n"));
    fs::remove(setting.at(name));
    write_text(setting.at(name), support::kSmallVocabulary);
  }
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

TEST_CASE("the run that holds the input is not overwritten, nor is any input by a profile") {
  const Setting setting;
  REQUIRE(setting.run({}).code == 0);
  const std::string weights = read_text(setting.at("run/model.safetensors"));
  for (const std::string model : {"run/checkpoint-1", "run/model.safetensors"}) {
    const Outcome outcome = setting.run({"--model", setting.at(model), "--overwrite"});
    CHECK(outcome.code == 2);
    CHECK(outcome.error == "error: " + setting.at("run") +
                               ": --overwrite: expected input outside the run that it removes, got " +
                               setting.at(model) + "; hint: name another --output\n");
  }
  const std::string text = read_text(setting.at("train.csv"));
  CHECK(setting.run({"--profile", setting.at("train.csv"), "--overwrite"}).code == 2);
  CHECK(setting.run({"--profile", setting.at("none/p.json"), "--overwrite"}).code == 5);
  CHECK(setting.run({"--profile", setting.at("model"), "--overwrite"}).code == 2);
  CHECK(read_text(setting.at("train.csv")) == text);
  CHECK(read_text(setting.at("run/model.safetensors")) == weights);
}

TEST_CASE("paths need not be UTF-8") {
  const Setting setting;
  fs::copy(setting.at("train.csv"), setting.at("caf\xE9.csv"));
  const Outcome outcome = setting.run({"--train", setting.at("caf\xE9.csv"), "--output", setting.at("r\xE9sum\xE9")});
  CHECK_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(fs::exists(setting.at("r\xE9sum\xE9/checkpoint-1/MANIFEST.json")));
}

TEST_CASE("a best model that has rotted or gone is taken from its checkpoint when the run is resumed, or missed") {
  const Setting setting;
  const std::vector<std::string> flags = {"--eval", setting.at("train.csv"), "--predict", setting.at("train.csv")};
  REQUIRE(setting.run(flags).code == 0);
  std::vector<std::string> again = flags;
  again.push_back("--resume");
  CHECK(setting.run(again).code == 0);
  const std::string weights = read_text(setting.at("run/model.safetensors"));
  std::string rotten = weights;
  rotten.back() ^= 1;
  const std::string expected =
      setting.at("run/model.safetensors") + ": expected the best model, as it was after step 1, got ";
  for (const bool gone : {false, true}) {
    write_text(setting.at("run/model.safetensors"), rotten);
    if (gone) fs::remove(setting.at("run/model.safetensors"));
    const Outcome outcome = setting.run(again);
    CHECK(outcome.code == 0);
    CHECK(outcome.error ==
          "warning: " + expected + (gone ? "none" : "another or a damaged one") + "; taken from checkpoint-1\n");
    CHECK(read_text(setting.at("run/model.safetensors")) == weights);
  }
  // Two epochs with a learning rate of 0 and one checkpoint kept: the best is the first, and is there no more.
  std::vector<std::string> two = flags;
  two.insert(two.end(), {"--epochs", "2", "--learning-rate", "0", "--keep", "1", "--output", setting.at("two")});
  REQUIRE(setting.run(two).code == 0);
  fs::remove(setting.at("two/model.safetensors"));
  two.push_back("--resume");
  const Outcome missed = setting.run(two);
  CHECK(missed.code == 4);
  CHECK(missed.error.ends_with("after step 1, got none; hint: " + setting.at("two/checkpoint-2") +
                               " holds the last one\n"));
}

TEST_CASE("a best model that is lost while steps are left gives way to the next evaluation's") {
  const Setting setting;
  const std::vector<std::string> flags = {"--eval", setting.at("train.csv"), "--epochs", "3",      "--learning-rate",
                                          "0",      "--save-every",          "1",        "--keep", "2"};
  REQUIRE(setting.run(flags).code == 0);  // the best is the first, whose checkpoint is there no more
  fs::remove_all(setting.at("run/checkpoint-3"));
  fs::remove(setting.at("run/model.safetensors"));
  std::vector<std::string> again = flags;
  again.push_back("--resume");
  const Outcome outcome = setting.run(again);
  CHECK(outcome.code == 0);
  CAPTURE(outcome.error);
  CHECK(outcome.error.ends_with("after step 1, got none; the next evaluation decides anew\n"));
  CHECK(fs::exists(setting.at("run/model.safetensors")));
}

TEST_CASE("a best model that is lost is taken from its checkpoint before that one is removed") {
  const Setting setting;
  const std::vector<std::string> flags = {"--eval", setting.at("train.csv"), "--epochs", "3", "--learning-rate",
                                          "0",      "--save-every",          "1"};
  REQUIRE(setting.run(flags).code == 0);  // the best is the first
  const std::string weights = read_text(setting.at("run/model.safetensors"));
  fs::remove_all(setting.at("run/checkpoint-3"));
  fs::remove(setting.at("run/model.safetensors"));
  std::vector<std::string> again = flags;
  again.insert(again.end(), {"--resume", "--keep", "1"});
  const Outcome outcome = setting.run(again);
  CAPTURE(outcome.error);
  CHECK(outcome.code == 0);
  CHECK(outcome.error.ends_with("after step 1, got none; taken from checkpoint-1\n"));
  CHECK(read_text(setting.at("run/model.safetensors")) == weights);
  CHECK_FALSE(fs::exists(setting.at("run/checkpoint-1")));
}

TEST_CASE("labels of a file to predict are copied, whatever they are") {
  const Setting setting;
  write_text(setting.at("test.csv"), "text,kind\nred fish,?\ntwo birds,-1\n");
  REQUIRE(setting.run({"--predict", setting.at("test.csv")}).code == 0);
  CHECK(read_text(setting.at("run/predictions.tsv")).find('?') != std::string::npos);
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

  // On replicas the examples keep their numbers.
  REQUIRE(setting.run({"--output", setting.at("spoiled")}).code == 0);
  support::spoil_embedding(setting.at("spoiled/model.safetensors"), 11);  // of two, which the rows have from 6 on
  write_text(setting.at("twelve.csv"), support::animals(12));
  const Outcome second =
      run_program("finetune", {"--task", "custom", "--label-column", "kind", "--model", setting.at("spoiled"),
                               "--predict", setting.at("twelve.csv"), "--output", setting.at("out"), "--max-seq-length",
                               "16", "--replicas", "2"});
  CHECK(second.code == 6);
  CHECK(second.error.starts_with("error: example 6: classifier: "));

  // Nor do they cost an earlier run.
  REQUIRE(setting.run({"--output", setting.at("earlier")}).code == 0);
  const std::vector<std::string> over = {"--task",           "custom",
                                         "--label-column",   "kind",
                                         "--model",          setting.at("run"),
                                         "--predict",        setting.at("train.csv"),
                                         "--output",         setting.at("earlier"),
                                         "--max-seq-length", "16",
                                         "--overwrite"};
  CHECK(run_program("finetune", over).code == 6);
  CHECK(fs::exists(setting.at("earlier/model.safetensors")));
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
