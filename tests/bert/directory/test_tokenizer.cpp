// The tokenizer of a model directory, from whichever files it has.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "bert/directory/located.h"
#include "bert/directory/model_directory.h"
#include "io/error.h"
#include "support/refusal.h"
#include "support/small_model.h"
#include "support/terminal.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::bert;
using support::write_text;

namespace {

/// kSmallVocabulary and tokens after it, up to `size`.
std::string words(int size) {
  std::string lines = support::kSmallVocabulary;
  for (int i = 15; i < size; ++i) lines += "word" + std::to_string(i) + "\n";
  return lines;
}

/// Something to save.
struct Classifier : nn::Module {
  nn::Parameter bias{in("bias"), nn::init::zeros({2})};
};

struct ModelDirectory {
  support::TemporaryDirectory directory;
  bert::Config config{.vocab_size = 15};

  void write(const std::string& name, const std::string& text) const { write_text(directory / name, text); }
  void write_tokenizer_json(const std::string& lines, bool lower_case) const {
    nlohmann::json json = nlohmann::json::parse(R"({
      "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true},
      "pre_tokenizer": {"type": "BertPreTokenizer"},
      "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}})");
    json["normalizer"]["lowercase"] = lower_case;
    int id = 0;
    std::istringstream in(lines);
    for (std::string word; std::getline(in, word);) json["model"]["vocab"][word] = id++;
    write("tokenizer.json", json.dump());
  }

  text::Tokenizer read() const { return read_tokenizer(directory / "", {}, config); }
  bool is_lower_case() const { return read().options().lower_case; }
  std::string name(const std::string& file) const { return directory / file; }
  std::string refusal() const {
    return support::refusal(Failure::model, [&] { read(); });
  }
};

}  // namespace

TEST_CASE("embeddings have a row for each token, or are padded to a multiple of 8, 16, 32, 64 or 128") {
  ModelDirectory model;
  const auto fits = [&](Dim rows, int tokens) {
    model.config.vocab_size = rows;
    model.write("vocab.txt", words(tokens));
    return model.refusal().empty();
  };
  CHECK(fits(30, 30));
  CHECK_FALSE(fits(30, 29));  // no multiple of 8: a line is missing
  CHECK_FALSE(fits(30, 31));
  CHECK(fits(40, 33));
  CHECK_FALSE(fits(40, 32));
  CHECK(fits(48, 33));
  CHECK_FALSE(fits(48, 32));
  CHECK(fits(256, 129));
  CHECK_FALSE(fits(256, 128));

  model.config.vocab_size = 30;
  model.write("vocab.txt", words(29));
  CHECK(model.refusal() == model.name("vocab.txt") + ": vocabulary: expected 30 tokens (vocab_size of " +
                               model.name("config.json") + "), got 29; hint: is it another model's?");
  model.write("bert_config.json", "{}");
  CHECK(model.refusal().find("(vocab_size of " + model.name("bert_config.json") + ")") != std::string::npos);
}

TEST_CASE("blank lines at the end of a vocabulary are no tokens where the model has no rows for them") {
  ModelDirectory model;
  const auto lines = [&](const std::string& text, const TokenizerFlags& flags = {}) {
    model.write("vocab.txt", text);
    return read_tokenizer(model.directory / "", flags, model.config).vocabulary();
  };
  for (const char* end : {"\n", "\n\n", "\r\n \t", " "}) {
    CHECK(lines(words(15) + end).text() == words(15));
    model.write("own", words(15) + end);
    CHECK(lines(words(15), {.vocab_file = model.name("own")}).text() == words(15));
  }
  model.config.vocab_size = 16;
  CHECK(lines(words(15) + "\n").size() == 16);
  model.config.vocab_size = 17;
  CHECK(lines(words(15) + "\nlast\n").find("last") == 16);
  model.config.vocab_size = 15;
  CHECK(support::refusal(Failure::model, [&] {
          lines(words(15) + "\nlast\n");
        }).find("expected 15 tokens (vocab_size of ") != std::string::npos);
}

TEST_CASE("whether text is lower-cased is said by tokenizer_config.json or tokenizer.json, else guessed") {
  const ModelDirectory model;
  model.write("vocab.txt", words(15));
  CHECK(model.is_lower_case());
  model.write_tokenizer_json(words(15), false);
  CHECK_FALSE(model.is_lower_case());
  model.write("tokenizer_config.json", R"({"do_lower_case": false})");
  CHECK_FALSE(model.is_lower_case());
  std::filesystem::remove(model.name("tokenizer.json"));
  CHECK_FALSE(model.is_lower_case());
  std::filesystem::remove(model.name("vocab.txt"));
  model.write_tokenizer_json(words(15), false);
  CHECK(model.read().vocabulary().text() == words(15));
}

TEST_CASE("a vocabulary with no other file beside it is cased if one of its words has a capital") {
  for (const auto& [folder, lower_case] : {std::pair("bert-base-uncased", true),
                                           {"bert-base-chinese", true},
                                           {"bert-base-cased", false},
                                           {"bert-base-multilingual-cased", false}}) {
    CAPTURE(folder);
    const std::filesystem::path file = std::filesystem::path(paths::shared) / "data/vocab" / folder / "vocab.txt";
    if (!std::filesystem::exists(file)) {
      MESSAGE("SKIPPED: " << file.string() << " is not there");
      continue;
    }
    ModelDirectory model;
    model.write("vocab.txt", support::read_text(file));
    model.config.vocab_size = text::Vocabulary::load(file).size();
    CHECK(model.is_lower_case() == lower_case);
  }
}

TEST_CASE("a config.json that names Japanese's tokenizer is refused as a tokenizer_config.json that does") {
  ModelDirectory model;
  model.write("vocab.txt", words(15));
  model.config.others = R"({"tokenizer_class": "BertTokenizer"})";
  CHECK(model.refusal() == "");
  model.config.others = R"({"tokenizer_class": "BertJapaneseTokenizer"})";
  const std::string rest =
      ": tokenizer_class: expected \"BertTokenizer\" or one that does the same, got \"BertJapaneseTokenizer\"";
  CHECK(model.refusal() == model.name("config.json") + rest);
  model.write("tokenizer_config.json", R"({"tokenizer_class": null})");
  CHECK(model.refusal() == model.name("config.json") + rest);
  model.write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");  // as a run writes it
  CHECK(model.refusal() == "");
  model.write("tokenizer_config.json", R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  CHECK(model.refusal() == model.name("tokenizer_config.json") + rest);
}

TEST_CASE("vocab.txt is enough beside a tokenizer.json of another kind, and one without a type is WordPiece") {
  const ModelDirectory model;
  model.write_tokenizer_json(words(15), false);
  auto json = nlohmann::json::parse(support::read_text(model.name("tokenizer.json")));
  json["model"].erase("type");
  model.write("tokenizer.json", json.dump());
  CHECK_FALSE(model.is_lower_case());  // without vocab.txt
  json["model"]["type"] = "BPE";
  model.write("tokenizer.json", json.dump());
  CHECK(model.refusal().find("model.type: expected \"WordPiece\", got \"BPE\"") != std::string::npos);
  model.write("vocab.txt", words(15));
  CHECK(model.refusal() == "");
}

TEST_CASE("a tokenizer.json that the system does not give is no tokenizer of another kind") {
  const std::filesystem::path file = "/sys/devices/system/cpu/online";  // is there, and is read in another way alone
  if (!std::filesystem::is_regular_file(file)) {
    MESSAGE("SKIPPED: " << file << " is not there");
    return;
  }
  const ModelDirectory model;
  model.write("vocab.txt", words(15));
  std::filesystem::create_symlink(file, model.name("tokenizer.json"));
  CHECK(support::refusal(Failure::io, [&] { model.read(); }).starts_with(model.name("tokenizer.json") + ": read: "));
}

TEST_CASE("nothing is said of files of a tokenizer that a directory may lack, and rows that only pad are told") {
  ModelDirectory model;
  model.write("vocab.txt", words(15));
  const auto said = [&] { return support::on_standard_error([&] { model.read(); }); };
  CHECK(said() == "");
  model.config.vocab_size = 16;
  CHECK(said().ends_with("vocab.txt: 15 tokens for 16 rows of word embeddings: the rest is taken for padding\n"));
}

TEST_CASE("a pipe in place of a file of a model directory is refused and not waited for") {
  for (const char* name : {"vocab.txt", "tokenizer.json", "tokenizer_config.json"}) {
    const ModelDirectory model;
    REQUIRE(::mkfifo(model.name(name).c_str(), 0600) == 0);
    CHECK(model.refusal().starts_with(model.name(name) + ": "));
    CHECK(model.refusal().ends_with(": expected a regular file, got a pipe or device"));
  }
}

TEST_CASE("vocabularies of one directory that disagree are refused, and both are named") {
  const ModelDirectory model;
  const std::string lines = words(15);
  model.write("vocab.txt", lines);
  model.write("tokenizer_config.json", R"({"do_lower_case": false})");
  model.write_tokenizer_json(lines, true);
  CHECK_FALSE(model.is_lower_case());  // as transformers has it
  std::string other = lines;
  other.replace(other.find("green"), 5, "white");
  model.write_tokenizer_json(other, false);
  CHECK(model.refusal() == model.name("vocab.txt") + ":7: vocabulary: expected \"white\" as in " +
                               model.name("tokenizer.json") +
                               ", got \"green\"; hint: the one that is wrong can be left out");
  model.write_tokenizer_json("[pad]" + lines.substr(5), false);
  CHECK(model.refusal().starts_with(model.name("vocab.txt") + ":1: vocabulary: expected \"[pad]\" as in "));
  model.write_tokenizer_json(words(16), false);
  CHECK(model.refusal() == model.name("vocab.txt") + ": vocabulary: expected 16 tokens as in " +
                               model.name("tokenizer.json") + ", got 15; hint: the one that is wrong can be left out");
  model.write_tokenizer_json(lines, false);
  CHECK(model.refusal() == "");
}

TEST_CASE("the longest word is as tokenizer.json says, also after saving, and 200 without one") {
  ModelDirectory model;
  model.write("vocab.txt", words(15));
  CHECK(model.read().options().max_chars_per_word == 200);
  model.write_tokenizer_json(words(15), true);
  const text::Tokenizer tokenizer = model.read();
  CHECK(tokenizer.options().max_chars_per_word == 100);
  const std::string word(150, 'a');
  CHECK(tokenizer.encode(word) == std::vector<std::int32_t>{tokenizer.vocabulary().unk_id()});
  const ModelDirectory saved;
  const auto backend = open_cpu({.threads = 1});
  Classifier module;
  const nn::ParameterSet parameters(module, *backend);
  write_directory(io::Files::system(), saved.directory / "",
                  {.config = model.config, .vocabulary = words(15), .tokenizer = tokenizer.options()}, parameters);
  CHECK(saved.read().options().max_chars_per_word == 100);
}

TEST_CASE("a vocabulary that a flag names must fit the model, and only beside one is it said that it is cased") {
  const ModelDirectory model;
  model.write("vocab.txt", words(15));
  model.write("own", words(15));
  model.write("longer", words(16));
  const auto refusal = [&](Failure failure, const TokenizerFlags& flags) {
    return support::refusal(failure, [&] { read_tokenizer(model.directory / "", flags, model.config); });
  };
  CHECK(refusal(Failure::model, {.vocab_file = model.name("own")}) == "");
  CHECK(refusal(Failure::model, {.vocab_file = model.name("own"), .cased = true}) == "");
  CHECK(refusal(Failure::model, {.vocab_file = model.name("longer")})
            .starts_with(model.name("longer") + ": vocabulary: expected 15 tokens "));
  CHECK(refusal(Failure::usage, {.cased = true}).starts_with("--cased: "));
}

TEST_CASE("a tokenizer without token types is warned of if the model has two") {
  const ModelDirectory model;
  model.write("vocab.txt", words(15));
  const auto warning = [&](const std::string& text, Dim types) {
    model.write("tokenizer_config.json", text);
    Config config = model.config;
    config.type_vocab_size = types;
    return support::on_standard_error([&] { read_tokenizer(model.directory / "", {}, config); });
  };
  const std::string none = "warning: " + model.name("tokenizer_config.json") +
                           ": it has no token types, so that in transformers both texts of a pair have type 0; here "
                           "the second has 1\n";
  CHECK(warning(R"({"tokenizer_class": "DistilBertTokenizer"})", 2) == none);
  CHECK(warning(R"({"tokenizer_class": "DistilBertTokenizerFast"})", 2) == none);
  CHECK(warning(R"({"tokenizer_class": "DistilBertTokenizer"})", 1) == "");
  CHECK(warning(R"({"tokenizer_class": "BertTokenizer"})", 2) == "");
  CHECK(warning(R"({"model_input_names": ["input_ids", "attention_mask"]})", 2) == none);
  CHECK(warning(R"({"tokenizer_class": "DistilBertTokenizer", "model_input_names": ["token_type_ids"]})", 2) == "");
}

TEST_CASE("a vocabulary that is named beside a directory with other words is used with a warning") {
  const ModelDirectory model;
  std::string others = words(15);
  others.replace(others.rfind('\n', others.size() - 2) + 1, std::string::npos, "other\n");
  model.write("same", words(15) + "\n");
  model.write("other", others);
  const auto warning = [&](const char* file) {
    return support::on_standard_error(
        [&] { read_tokenizer(model.directory / "", {.vocab_file = model.name(file)}, model.config); });
  };
  const auto used = [&](const char* own) {
    return "warning: " + model.name("other") + ": used in place of " + model.name(own) + ", which has other words\n";
  };
  CHECK(warning("other") == "");  // there are none
  model.write_tokenizer_json(words(15), true);
  CHECK(warning("same") == "");
  CHECK(warning("other") == used("tokenizer.json"));
  model.write("vocab.txt", words(15));
  CHECK(warning("same") == "");
  CHECK(warning("other") == used("vocab.txt"));
  model.write("vocab.txt", "");
  CHECK(warning("other") == "");  // they cannot be read
}

TEST_CASE("what is beside a file of weights is read unless it lies in the variables of a SavedModel") {
  const support::TemporaryDirectory directory;
  for (const char* const folder : {"alone/variables", "saved/variables", "saved/mine"}) {
    std::filesystem::create_directories(directory / folder);
    write_text(directory / folder / "model.safetensors", "");
  }
  write_text(directory / "saved/saved_model.pb", "");
  const auto of = [&](const std::string& folder) { return directory_of(directory / folder / "model.safetensors"); };
  CHECK(of("alone/variables") == directory / "alone/variables");
  CHECK(of("saved/mine") == directory / "saved/mine");
  CHECK(of("saved/variables") == directory / "saved/assets.extra");
}

TEST_CASE("every file that a model is read from is known as one") {
  const ModelDirectory model;
  for (const char* name :
       {"config.json", "added_tokens.json", "modules.json", "model-00001-of-00002.safetensors", "features.jsonl",
        "model.safetensors.index.json", "notes.txt", "bert_model.ckpt.index", "model.ckpt-20.data-00000-of-00001",
        "variables.index", "checkpoint", "model.data-00000-of-00001", "config_sentence_transformers.json"})
    model.write(name, "");
  CHECK(model_files(model.directory / "").size() == 11);
  CHECK_FALSE(is_model_file("features.jsonl"));
  CHECK_FALSE(is_model_file("notes.txt"));
}

TEST_CASE("the files of a model are also those in the directories that modules.json names and in a SavedModel") {
  const support::TemporaryDirectory directory;
  const auto files = [&](const std::string& model) {
    std::set<std::string> names;
    for (const std::filesystem::path& file : model_files(directory / model))
      names.insert(file.lexically_relative(directory / ""));
    return names;
  };
  for (const char* const folder : {"m/1_Pooling", "m/notes", "s/variables", "s/assets.extra"})
    std::filesystem::create_directories(directory / folder);
  for (const char* const file : {"m/1_Pooling/config.json", "m/notes/config.json", "m/blob", "s/saved_model.pb",
                                 "s/variables/variables.index", "s/assets.extra/vocab.txt", "s/notes.txt"})
    write_text(directory / file, "");
  write_text(directory / "m/modules.json", R"([{"path": ""}, {"path": "1_Pooling"}, {"path": "2_Normalize"}])");
  CHECK(files("m") == std::set<std::string>{"m/modules.json", "m/1_Pooling/config.json"});
  CHECK(files("m/blob") == std::set<std::string>{"m/blob", "m/modules.json", "m/1_Pooling/config.json"});
  CHECK(files("s") ==
        std::set<std::string>{"s/saved_model.pb", "s/variables/variables.index", "s/assets.extra/vocab.txt"});
  write_text(directory / "m/modules.json", "[");
  CHECK(files("m") == std::set<std::string>{"m/modules.json"});
}

TEST_CASE("a model that is not there and may be meant as one of Hugging Face's hub is refused with a hint") {
  const auto is_hinted = [](const std::string& model) {
    const std::string error = support::refusal(Failure::model, [&] { require_model(model); });
    CHECK(error.starts_with(model + ": expected a model directory or a checkpoint, got nothing there"));
    return error.find("hint: nothing is downloaded: git clone or hf download fetch ") != std::string::npos;
  };
  for (const char* model : {"no-such-model", "no-such-owner/no-such-model"}) CHECK(is_hinted(model));
  for (const char* model : {"/no-such-model", "./no-such-model", "no-such-owner/no-such/model", "no-such-model.bin"})
    CHECK_FALSE(is_hinted(model));
}
