// Tokens that a directory declares beside its vocabulary, or of it.
#include "bert/directory/added_tokens.h"

#include <doctest/doctest.h>

#include "bert/directory/model_directory.h"
#include "support/refusal.h"
#include "support/small_model.h"
#include "support/terminal.h"

using namespace bertrand;
using namespace bertrand::bert;
using Ids = std::vector<std::int32_t>;

namespace {

constexpr std::int32_t kWords = 15;  // of support::kSmallVocabulary

/// A tokenizer.json of that vocabulary, with a list added_tokens.
std::string tokenizer_json(const std::string& added) {
  nlohmann::json json = nlohmann::json::parse(R"({
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"}})");
  json["added_tokens"] = nlohmann::json::parse(added);
  std::istringstream in(support::kSmallVocabulary);
  int id = 0;
  for (std::string word; std::getline(in, word);) json["model"]["vocab"][word] = id++;
  return json.dump();
}

struct Directory {
  support::TemporaryDirectory directory;
  bert::Config config{.vocab_size = kWords};

  explicit Directory(Dim rows = kWords) : config{.vocab_size = rows} {}
  void write(const std::string& name, const std::string& text) const { support::write_text(directory / name, text); }
  void write_vocabulary(const std::string& more = "") const { write("vocab.txt", support::kSmallVocabulary + more); }
  text::Tokenizer read() const { return read_tokenizer(directory / "", {}, config); }
  std::string refusal() const {
    const std::string error = support::refusal(Failure::model, [&] { read(); }), own = directory / "";
    return error.starts_with(own) ? error.substr(own.size()) : error;
  }
};

/// The tokenizer as it is when it was saved and is read again.
text::Tokenizer saved(const text::Tokenizer& tokenizer, const bert::Config& config) {
  const support::TemporaryDirectory directory;
  write_configuration(
      io::Files::system(), directory / "",
      {.config = config, .vocabulary = tokenizer.vocabulary().text(), .tokenizer = tokenizer.options()});
  return read_tokenizer(directory / "", {}, config);
}

}  // namespace

TEST_CASE("a token of the vocabulary that any file declares is read whole, and so after saving") {
  const std::string flags = R"("single_word": false, "lstrip": false, "rstrip": false, "normalized": false, )"
                            R"("special": true})";
  for (const auto& [name, text] :
       {std::pair("tokenizer_config.json", std::string(R"({"extra_special_tokens": ["[E1]"]})")),
        {"tokenizer_config.json", R"({"additional_special_tokens": [{"content": "[E1]"}]})"},
        {"tokenizer_config.json", R"({"extra_special_tokens": {"first_token": "[E1]"}})"},
        {"tokenizer_config.json", R"({"added_tokens_decoder": {"15": {"content": "[E1]", )" + flags + "}}"},
        {"special_tokens_map.json", R"({"additional_special_tokens": ["[E1]"], "unk_token": "[UNK]"})"},
        {"added_tokens.json", R"({"[E1]": 15})"}}) {
    CAPTURE(text);
    const Directory model(kWords + 1);
    model.write_vocabulary("[E1]\n");
    CHECK(model.read().encode("red[E1]fish") == Ids{5, 1, 1, 1, 8});
    model.write(name, text);
    const text::Tokenizer tokenizer = model.read(), again = saved(tokenizer, model.config);
    CHECK(tokenizer.encode("red[E1]fish") == Ids{5, 15, 8});
    CHECK(again.encode("red[E1]fish [SEP]") == Ids{5, 15, 8, 1, 1, 1});
    CHECK(again.options().added_tokens == tokenizer.options().added_tokens);
    REQUIRE(tokenizer.options().added_tokens.size() == 1);
    CHECK(tokenizer.options().added_tokens.front().special == (std::string(name) != "added_tokens.json"));
  }
}

TEST_CASE("a token added behind the vocabulary is no piece of a word, nor is it after saving") {
  Directory model(kWords + 1);
  model.write_vocabulary();
  model.write("tokenizer_config.json",
              R"({"do_lower_case": true, "added_tokens_decoder": {"15": {"content": "re", "single_word": true}}})");
  for (const text::Tokenizer& tokenizer : {model.read(), saved(model.read(), model.config)}) {
    CHECK(tokenizer.encode("re") == Ids{15});
    CHECK(tokenizer.encode("Re") == Ids{1});
    CHECK(tokenizer.encode("res") == Ids{1});
  }
}

TEST_CASE("a token that is a single word stands beside no letter, digit or _ of any script") {
  Directory model(kWords + 1);
  model.write_vocabulary();
  model.write("tokenizer_config.json",
              R"({"do_lower_case": true, "added_tokens_decoder": {"15": {"content": "@u", "single_word": true}}})");
  const text::Tokenizer tokenizer = model.read();
  const auto has = [&](const std::string& text) { return std::ranges::count(tokenizer.encode(text), 15) > 0; };
  for (const char* text :
       {"@u", "red @u.", "\u201C@u\u201D", "\u00A0@u\u00A0", "\uFF0C@u", "@u\U0001F600", "\xFF@u\xE4"})
    CHECK_MESSAGE(has(text), text);
  for (const char* text :
       {"a@u", "@u_", "7@u", "\u00E9@u", "@u\u4ECA", "@u\u0301", "\u0663@u", "\U0001D400@u", "@u\u200D", "\u200C@u"})
    CHECK_FALSE_MESSAGE(has(text), text);
}

TEST_CASE("a single word that is normalized may stand beside an ideograph, which the normalizer sets apart") {
  Directory model(kWords + 1);
  model.write_vocabulary();
  for (const bool lower_case : {true, false}) {
    model.write("tokenizer_config.json", fmt::format(R"({{"do_lower_case": {}, "added_tokens_decoder": {{
        "15": {{"content": "@u", "single_word": true, "normalized": true}}}}}})",
                                                     lower_case));
    const text::Tokenizer tokenizer = model.read();
    const auto has = [&](const std::string& text) { return std::ranges::count(tokenizer.encode(text), 15) > 0; };
    for (const std::string text : {"@u\u4F8D", "\u4F8D@u", "\U00020000@u\u3400"}) CHECK_MESSAGE(has(text), text);
    for (const std::string text : {"@u\u304B", "\uAC00@u", "a@u\u4F8D"}) CHECK_FALSE_MESSAGE(has(text), text);
  }
}

TEST_CASE("tokens added behind the vocabulary, in tokenizer.json or a file of their own, are further lines of it") {
  Directory model(kWords + 2);
  model.write_vocabulary();
  CHECK(model.refusal() != "");
  model.write("added_tokens.json", R"({"<b>": 16, "<a>": 15, "[PAD]": 0, "[MASK]": 4})");
  CHECK(model.read().encode("<a> red<B>") == Ids{15, 5, 16});
  CHECK(model.read().encode("[PAD] red [MASK]") == Ids{1, 1, 1, 5, 1, 1, 1});  // those of BERT are no added ones
  CHECK(model.read().vocabulary().token(16) == "<b>");
  CHECK(model.read().vocabulary().text() == support::kSmallVocabulary);
  CHECK(saved(model.read(), model.config).encode("<a> red<B>") == Ids{15, 5, 16});
  std::filesystem::remove(model.directory / "added_tokens.json");
  for (const bool has_lines : {true, false}) {
    if (!has_lines) std::filesystem::remove(model.directory / "vocab.txt");
    model.write("tokenizer.json", tokenizer_json(R"([{"id": 0, "content": "[PAD]", "special": true},
        {"id": 15, "content": "<a>", "normalized": true}, {"id": 16, "content": "<b>", "special": true}])"));
    CHECK(model.read().encode("<A> red<B><b>") == Ids{15, 5, 1, 1, 1, 16});
  }
  model.config.vocab_size = 24;  // padded to a multiple of 8
  CHECK(model.read().vocabulary().size() == kWords + 2);
}

TEST_CASE("special tokens that no file numbers have the ids behind all others, in the order of their declaration") {
  for (const std::string key : {"extra_special_tokens", "additional_special_tokens"})
    for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"}) {
      CAPTURE(key);
      CAPTURE(file);
      Directory model(kWords + 2);
      model.write_vocabulary();
      model.write(file, fmt::format(R"({{"{}": ["<z>", "[E1]", "red"]}})", key));
      std::vector<text::Tokenizer> read;
      const std::string warnings = support::on_standard_error([&] { read.push_back(model.read()); });
      CHECK(warnings == "");
      CHECK(read[0].encode("[E1]<z>red") == Ids{16, 15, 5});
      CHECK(saved(read[0], model.config).encode("[E1]<z>red") == Ids{16, 15, 5});
      model.config.vocab_size = kWords + 4;
      model.write("added_tokens.json", R"({"<n>": 15, "<a>": 16})");  // numbers come first
      CHECK(model.read().encode("<a><n><z>[E1]") == Ids{16, 15, 17, 18});
    }
}

TEST_CASE("tokens of an older name or file are none if the newer one has a list") {
  const Directory model(24);
  model.write_vocabulary("?\n");
  const auto reads = [&](const std::string& config, const std::string& map) {
    model.write("tokenizer_config.json", config);
    model.write("special_tokens_map.json", map);
    return model.read().encode("<x>refish");
  };
  const std::string list = R"({"extra_special_tokens": ["<x>"])", older = R"("additional_special_tokens": ["re"]})";
  const std::string all = R"({"added_tokens_decoder": {"16": {"content": "<x>"}}})";
  CHECK(reads(list + ", " + older, "{}") == Ids{16, 1});
  CHECK(reads(list + "}", "{" + older) == Ids{16, 1});
  CHECK(reads(all, R"({"extra_special_tokens": ["re"]})") == Ids{16, 1});
  model.write("added_tokens.json", R"({"re": 17, "<x>": 16, "red": 5})");
  const std::string said = support::on_standard_error([&] { CHECK(reads(all, "{}") == Ids{16, 1}); });
  CHECK(said.starts_with("warning: " + (model.directory / "added_tokens.json").string() +
                         ": expected no token that added_tokens_decoder of tokenizer_config.json lacks, got 1: passed "
                         "over, as in transformers\n"));
  model.write("added_tokens.json", R"({"re": 16})");
  CHECK(reads("{}", "{}") == Ids{1, 1, 1, 16, 8});
}

TEST_CASE("tokens are added behind a vocabulary whose last line has no end") {
  const Directory model(kWords + 1);
  model.write("vocab.txt", support::kSmallVocabulary.substr(0, support::kSmallVocabulary.size() - 1));
  model.write("added_tokens.json", R"({"<a>": 15})");
  CHECK(model.read().encode("<a> red.") == Ids{15, 5, 14});
  CHECK(model.read().vocabulary().size() == kWords + 1);
}

TEST_CASE("the first line of a vocabulary may be an added token, and has no other number") {
  const Directory model(kWords + 1);
  model.write("vocab.txt", "<a>\n" + support::kSmallVocabulary);
  model.write("tokenizer_config.json", R"({"added_tokens_decoder": {"0": {"content": "<a>"}}})");
  CHECK(model.read().encode("red<a>") == Ids{6, 0});
  std::filesystem::remove(model.directory / "tokenizer_config.json");
  model.write("added_tokens.json", R"({"<a>": 16})");
  CHECK(model.refusal() == "added_tokens.json: \"<a>\": expected the number of a row that no other token has, got 16");
}

TEST_CASE("added tokens without a row are read piece by piece, and do not stand for lines that the vocabulary lacks") {
  Directory model;
  model.write_vocabulary();
  model.write("added_tokens.json", R"({"<a>": 15})");
  model.write("tokenizer_config.json", R"({"extra_special_tokens": ["<c>"]})");
  CHECK(model.read().encode("<a><c>") == Ids{1, 1, 1, 1, 1, 1});
  CHECK(model.read().options().added_tokens.empty());
  model.config.vocab_size = 18;
  CHECK(model.refusal().starts_with("vocab.txt: vocabulary: expected 18 tokens "));
}

TEST_CASE("a warning names the first added token without a row, and says how many more there are") {
  const Directory model;
  model.write_vocabulary();
  const auto warning = [&](const std::string& added) {
    model.write("added_tokens.json", added);
    return support::on_standard_error([&] { model.read(); });
  };
  const std::string rest = " no row of the word embeddings (vocab_size 15): it is read piece by piece\n";
  CHECK(warning(R"({"<a>": 15})").ends_with(": <a> has" + rest));
  CHECK(warning(R"({"<a>": 15, "<b>": 16, "<c>": 17})").ends_with(": each of <a> and 2 more has" + rest));
}

TEST_CASE("added tokens with the id of another token, or none that follows the vocabulary, are refused") {
  const Directory model(kWords + 3);
  model.write_vocabulary();
  const auto refusal = [&](const std::string& added) {
    model.write("added_tokens.json", added);
    return model.refusal();
  };
  const std::string taken = ": expected the number of a row that no other token has, got ";
  CHECK(refusal(R"({"<a>": 4})") == "added_tokens.json: \"<a>\"" + taken + "4");
  CHECK(refusal(R"({"<a>": 0})") == "added_tokens.json: \"<a>\"" + taken + "0");
  CHECK(refusal(R"({"<a>": "x"})") == "added_tokens.json: \"<a>\"" + taken + "\"x\"");
  CHECK(refusal(R"({"<a>": -1})") == "added_tokens.json: \"<a>\"" + taken + "-1");
  CHECK(refusal(R"({"<a>": 15, "<b>": 15})") == "added_tokens.json: \"<b>\"" + taken + "15");
  CHECK(refusal(R"({"red": 4})") == "added_tokens.json: \"red\"" + taken + "4");
  CHECK(refusal(R"({"<a>": 15, "<b>": 17})").ends_with("from 15 on, got 17 for \"<b>\""));
  for (const char* text : {"", " a", "a\\n"})
    CHECK(refusal(fmt::format("{{\"{}\": 15}}", text))
              .starts_with("added_tokens.json: expected added tokens of one line"));
  model.write("added_tokens.json", "{}");
  model.write("tokenizer_config.json", R"({"added_tokens_decoder": null, "additional_special_tokens": null})");
  CHECK(model.refusal().starts_with("vocab.txt: "));  // these are none
  for (const char* text :
       {R"({"extra_special_tokens": "<a>"})", R"({"extra_special_tokens": [3]})", R"({"added_tokens_decoder": []})",
        R"({"added_tokens_decoder": {"x": {"content": "<a>"}}})"}) {
    CAPTURE(text);
    model.write("tokenizer_config.json", text);
    CHECK(model.refusal().starts_with("tokenizer_config.json: "));
  }
}

TEST_CASE("of the tokens that a directory is written with the special ones alone are declared as such") {
  const std::vector<text::AddedToken> tokens{{.text = "<a>", .id = 15}, {.text = "<b>", .id = 16, .special = true}};
  io::Json config = io::Json::object();
  declare_added_tokens(config, tokens);
  CHECK(config.at("additional_special_tokens") == io::Json{"<b>"});
  CHECK(config.at("added_tokens_decoder").at("15").at("special") == false);
  CHECK(config.at("added_tokens_decoder").at("16").at("special") == true);
  io::Json without = io::Json::object();
  declare_added_tokens(without, {});
  CHECK(without.empty());
}
