#include "bert/directory/model_source.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "io/error.h"
#include "support/refusal.h"
#include "support/small_model.h"

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

TEST_CASE("embeddings may have rows for tokens that were added behind the vocabulary") {
  ModelDirectory model;
  model.config.vocab_size = 31;
  model.write("vocab.txt", words(29));
  CHECK(model.refusal() != "");
  model.write("added_tokens.json", R"({"<a>": 29, "<b>": 30})");
  CHECK(model.refusal() == "");
  model.write("added_tokens.json", R"({"<a>": 29})");
  CHECK(model.refusal() != "");
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
                               model.name("tokenizer.json") + ", got \"green\"");
  model.write_tokenizer_json(words(16), false);
  CHECK(model.refusal() == model.name("vocab.txt") + ": vocabulary: expected 16 tokens as in " +
                               model.name("tokenizer.json") + ", got 15");
  model.write_tokenizer_json(lines, false);
  CHECK(model.refusal() == "");
}
