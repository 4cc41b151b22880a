// Training from a corpus that prepare corpus made, beside training from the text itself.
#include <sys/stat.h>

#include <fmt/format.h>

#include "pretrain_setting.h"

using support::Flags;
using support::PretrainSetting;
using support::run_program;

namespace {

void prepare(const PretrainSetting& setting, const std::string& text, const std::string& corpus,
             const Flags& more = {}) {
  const auto outcome =
      run_program("prepare", support::joined({"corpus", "--vocab-file", setting.directory / "vocab.txt", "--input",
                                              setting.directory / text, "--output", setting.directory / corpus},
                                             more));
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
}

/// All that two runs leave but the files that name their inputs.
void check_same_training(const PretrainSetting& setting, const std::string& run, const std::string& expected) {
  CHECK_MESSAGE(setting.file(run + "/model.safetensors") == setting.file(expected + "/model.safetensors"), run);
  CHECK_MESSAGE(setting.results(run) == setting.results(expected), run);
  CHECK(!setting.metrics(expected).empty());
  CHECK(setting.metrics(run) == setting.metrics(expected));
}

}  // namespace

TEST_CASE("training from a corpus has the bits of training from its text, also resumed and with other shards") {
  const PretrainSetting setting(60);
  prepare(setting, "text.txt", "corpus", {"--shards", "3"});
  prepare(setting, "held_out.txt", "held_out", {"--threads", "1"});
  const Flags steps = {"--steps", "8", "--eval-every", "4"};
  const Flags text = support::joined(steps, {"--eval-input", setting.directory / "held_out.txt"});
  const Flags corpus =
      support::joined(steps, {"--input", setting.directory / "corpus", "--eval-input", setting.directory / "held_out"});
  REQUIRE(setting.run("text_run", text).code == 0);
  REQUIRE(setting.run("corpus_run", corpus).code == 0);
  check_same_training(setting, "corpus_run", "text_run");

  Flags half = corpus;
  half[1] = "4";
  REQUIRE(setting.run("resumed", half).code == 0);
  const auto resumed = setting.run("resumed", support::joined(corpus, {"--resume"}));
  CHECK_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(setting.file("resumed/model.safetensors") != "");
}

TEST_CASE("a corpus of another vocabulary, one that is cut short, and one beside text are refused in one line") {
  const PretrainSetting setting;
  prepare(setting, "text.txt", "corpus");
  const Flags input = {"--input", setting.directory / "corpus", "--steps", "1"};
  support::write_text(setting.directory / "other.txt", setting.file("vocab.txt") + "more\n");
  const auto other =
      setting.run("run", support::joined(input, {"--vocab-file", setting.directory / "other.txt", "--config", "tiny"}));
  CHECK(other.code == 3);
  CHECK_MESSAGE(
      other.error.find("manifest.json: vocab_sha256: expected that of the vocabulary given") != std::string::npos,
      other.error);
  const auto mixed = setting.run(
      "run", support::joined(input, {"--input", setting.directory / "corpus", setting.directory / "text.txt"}));
  CHECK(mixed.code == 2);
  CHECK_MESSAGE(mixed.error.find("expected files of one kind") != std::string::npos, mixed.error);
  const std::string ids = setting.directory / "corpus/shard-00000.ids";
  std::filesystem::resize_file(ids, std::filesystem::file_size(ids) - 2);
  const auto cut = setting.run("run", input);
  CHECK(cut.code == 3);
  CHECK_MESSAGE(cut.error.find("shard-00000.ids: expected ") != std::string::npos, cut.error);
  CHECK(std::ranges::count(cut.error, '\n') == 1);
}

TEST_CASE("a corpus has the added tokens of a model that it is made for, and another is refused") {
  const PretrainSetting setting;
  REQUIRE(setting.run("first", {"--steps", "1"}).code == 0);
  prepare(setting, "text.txt", "corpus");
  const auto train = [&](const std::string& output, const std::string& input) {
    return run_program("pretrain",
                       {"--init", setting.directory / "first", "--input", setting.directory / input, "--output",
                        setting.directory / output, "--steps", "1", "--max-seq-length", "24", "--batch-size", "2"});
  };
  CHECK(train("second", "corpus").code == 0);  // tokenizer.json lists [PAD], [UNK], … and [MASK] as added
  const auto check_refused = [&](const std::string& key, const std::string& hint) {
    const auto refused = train("third", "corpus");
    CAPTURE(refused.error);
    CHECK(refused.code == 3);
    const std::string manifest = setting.directory / "corpus/manifest.json";
    CHECK(refused.error.starts_with("error: " + manifest + ": " + key + ": expected "));
    CHECK(refused.error.ends_with("; hint: " + hint + "\n"));
  };
  const int words = nlohmann::json::parse(setting.file("first/config.json")).at("vocab_size");
  const std::string added = setting.directory / "first/added_tokens.json";
  support::write_text(added, R"({"b": 7})");
  check_refused("added_tokens_sha256", "prepare corpus --model makes it with those of a model");

  std::string vocabulary = setting.file("first/vocab.txt");
  vocabulary.resize(vocabulary.rfind('\n', vocabulary.size() - 2) + 1);  // its last row is the token that is added
  support::write_text(setting.directory / "first/vocab.txt", vocabulary);
  std::filesystem::remove(setting.directory / "first/tokenizer.json");  // which has the row before
  support::write_text(added, fmt::format(R"({{"[new]": {}}})", words - 1));
  check_refused("vocab_sha256", "make the corpus with the same --vocab-file, or with --model");

  std::string text = setting.file("text.txt");
  text.insert(text.find(' '), " [new]");
  support::write_text(setting.directory / "new.txt", text);
  const auto made = run_program("prepare", {"corpus", "--input", setting.directory / "new.txt", "--output",
                                            setting.directory / "with-new", "--model", setting.directory / "first"});
  REQUIRE_MESSAGE(made.code == 0, made.error);
  REQUIRE(train("of-corpus", "with-new").code == 0);
  REQUIRE(train("of-text", "new.txt").code == 0);
  CHECK(setting.file("of-corpus/model.safetensors") == setting.file("of-text/model.safetensors"));
  const auto tokens =
      run_program("prepare", {"tokens", "--model", setting.directory / "first", setting.directory / "new.txt"});
  CHECK(tokens.out.starts_with(fmt::format("5 {}\n", words - 1)));
}

TEST_CASE("a corpus of words that the model's tokenizer would not cut is trained on with a warning") {
  const PretrainSetting setting;
  REQUIRE(setting.run("first", {"--steps", "1"}).code == 0);
  prepare(setting, "text.txt", "corpus");
  const std::string file = setting.directory / "first/tokenizer.json";
  auto tokenizer = nlohmann::json::parse(support::read_text(file));
  tokenizer["model"]["max_input_chars_per_word"] = 100;
  support::write_text(file, tokenizer.dump());
  const auto train = [&](const std::string& output) {
    return run_program("pretrain", {"--init", setting.directory / "first", "--input", setting.directory / "corpus",
                                    "--output", setting.directory / output, "--steps", "1", "--max-seq-length", "24"});
  };
  const std::string warning = "warning: " + (setting.directory / "corpus/manifest.json").string() +
                              ": words of up to 200 characters are cut into pieces, and by the model's tokenizer of up "
                              "to 100; hint: prepare corpus --model\n";
  const auto warned = train("second");
  CHECK(warned.code == 0);
  CHECK(warned.error.find(warning) != std::string::npos);
  REQUIRE(run_program("prepare", {"corpus", "--input", setting.directory / "text.txt", "--output",
                                  setting.directory / "corpus2", "--model", setting.directory / "first"})
              .code == 0);
  CHECK(nlohmann::json::parse(setting.file("corpus2/manifest.json")).at("max_chars_per_word") == 100);
  // A corpus that says nothing was made when nothing was said, for Google's length.
  auto manifest = nlohmann::json::parse(setting.file("corpus/manifest.json"));
  manifest.erase("max_chars_per_word");
  manifest.erase("added_tokens_sha256");
  support::write_text(setting.directory / "corpus/manifest.json", manifest.dump());
  CHECK(train("third").error.find(warning) != std::string::npos);
}

TEST_CASE("a changed byte of a corpus is found by --check-inputs all and by --validate-only, and none looks past it") {
  const PretrainSetting setting(60);
  prepare(setting, "text.txt", "corpus");
  const std::string sentences = setting.directory / "corpus/shard-00000.sentences";
  const std::string whole = support::read_text(sentences);
  std::string changed = whole;
  changed[8 * 3] = static_cast<char>(changed[8 * 3] ^ 1);  // still in order
  support::write_text(sentences, changed);
  const Flags input = {"--input", setting.directory / "corpus", "--steps", "2"};
  for (const Flags& check : {Flags{"--check-inputs", "all"}, Flags{"--check-inputs", "index"}, Flags{},
                             Flags{"--check-inputs", "none", "--validate-only"}}) {
    const auto refused = setting.run("run", support::joined(input, check));
    CHECK(refused.code == 3);
    CHECK_MESSAGE(refused.error.find("shard-00000.sentences: expected ") != std::string::npos, refused.error);
    CHECK(refused.error.find(" as manifest.json says, got 0x") != std::string::npos);
    CHECK(std::ranges::count(refused.error, '\n') == 1);
  }
  const auto unseen = setting.run("unseen", support::joined(input, {"--check-inputs", "none"}));
  CHECK_MESSAGE(unseen.code == 0, unseen.error);
}

TEST_CASE("records of another vocabulary are refused by the id that they begin with") {
  const PretrainSetting setting;
  const std::string words = setting.file("vocab.txt");  // the other has as many
  support::write_text(setting.directory / "other.txt", "[unused]\n" + words.substr(0, words.find("##z")));
  const std::string records = setting.directory / "r.tfrecord";
  for (const std::string vocabulary : {"other.txt", "vocab.txt"}) {
    REQUIRE(run_program("prepare",
                        {"records", "--vocab-file", setting.directory / vocabulary, "--input",
                         setting.directory / "text.txt", "--output", records, "--max-seq-length", "24", "--overwrite"})
                .code == 0);
    const auto outcome = setting.run("run", {"--input", records, "--steps", "1"});
    CHECK(outcome.code == (vocabulary == "vocab.txt" ? 0 : 3));
    if (outcome.code == 3)
      CHECK(outcome.error ==
            fmt::format("error: {}: record 1: input_ids: expected to begin with 2, [CLS] of {}, got 3; hint: were the "
                        "records made with another vocabulary?\n",
                        records, (setting.directory / "vocab.txt").string()));
  }
}

TEST_CASE("records train to the same bits with an index as without, resume with it, and notice another file") {
  const PretrainSetting setting(60);
  const Flags records = {"records",
                         "--vocab-file",
                         setting.directory / "vocab.txt",
                         "--input",
                         setting.directory / "text.txt",
                         "--output",
                         setting.directory / "r.tfrecord",
                         "--max-seq-length",
                         "24",
                         "--overwrite",
                         "--seed"};
  REQUIRE(run_program("prepare", support::joined(records, {"1"})).code == 0);
  const Flags input = {"--input", setting.directory / "r.tfrecord", "--steps", "4"};
  const std::string index = setting.directory / ".r.tfrecord.bertrand.idx";
  REQUIRE(setting.run("plan", support::joined(input, {"--plan"})).code == 0);
  CHECK(!std::filesystem::exists(index));
  REQUIRE(setting.run("first", input).code == 0);
  CHECK(std::filesystem::exists(index));  // under a name that a shell's * does not find
  const std::string good = support::read_text(index);
  for (const std::string check : {"all", "index", "none"}) {
    REQUIRE(setting.run(check, support::joined(input, {"--check-inputs", check})).code == 0);
    check_same_training(setting, check, "first");
    CHECK(support::read_text(index) == good);
  }
  Flags more = input;
  more[3] = "6";
  REQUIRE(setting.run("first", support::joined(more, {"--resume"})).code == 0);

  std::filesystem::remove(index);
  std::filesystem::create_directory(index);  // even root cannot write the index there
  const auto apart = setting.run("apart", input);
  CHECK_MESSAGE(apart.error.find("index") == std::string::npos, apart.error);
  check_same_training(setting, "apart", "all");
  std::vector<std::filesystem::path> kept;
  for (const auto& entry : std::filesystem::directory_iterator(setting.directory / "apart"))
    if (entry.path().extension() == ".idx") kept.push_back(entry.path());
  REQUIRE(kept.size() == 1);
  CHECK(support::read_text(kept[0]) == good);
  const auto written = std::filesystem::last_write_time(kept[0]);
  REQUIRE(setting.run("apart", support::joined(more, {"--resume"})).code == 0);
  CHECK(std::filesystem::last_write_time(kept[0]) == written);

  REQUIRE(run_program("prepare", support::joined(records, {"2"})).code == 0);
  more[3] = "8";
  const auto other = setting.run("first", support::joined(more, {"--resume"}));
  CHECK(other.code == 2);
  CHECK_MESSAGE(other.error.find("r.tfrecord") != std::string::npos, other.error);
}

TEST_CASE("SIGTERM while long records are read ends the program, and the indexes of files that were read stay") {
  const PretrainSetting setting(60);
  const std::string first = setting.directory / "first.tfrecord", second = setting.directory / "second.tfrecord";
  REQUIRE(run_program("prepare", {"records", "--vocab-file", setting.directory / "vocab.txt", "--input",
                                  setting.directory / "text.txt", "--output", first, "--max-seq-length", "24"})
              .code == 0);
  std::string records = support::read_text(first);
  while (records.size() < 60'000'000) records += records;
  support::write_text(second, records);
  const auto has_index = [&](const std::string& name) {
    return std::filesystem::exists(setting.directory / ("." + name + ".tfrecord.bertrand.idx"));
  };
  const Flags flags = setting.flags("run", {"--steps", "1", "--threads", "1", "--input", first, second});
  CHECK(setting.run_and_signal(flags, SIGTERM, [&] { return has_index("first"); }) == 75);
  CHECK_FALSE(has_index("second"));
  CHECK_FALSE(std::filesystem::exists(setting.directory / "run"));
}

TEST_CASE("flags that have no effect on what is trained from are named") {
  const PretrainSetting setting;
  const auto outcome =
      setting.run("run", {"--steps", "1", "--strict", "--eval-every", "1", "--on-corrupt", "skip", "--overwrite"});
  CHECK(outcome.code == 0);
  CHECK(outcome.error ==
        "warning: --strict: of no effect without --init\n"
        "warning: --eval-every: of no effect without --eval-input\n"
        "warning: --on-corrupt skip: of no effect without TFRecord files\n");
  CHECK(setting.run("run", {"--steps", "1", "--overwrite"}).error.empty());
}
