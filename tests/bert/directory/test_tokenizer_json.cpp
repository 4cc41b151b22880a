#include "bert/directory/tokenizer_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "io/error.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::bert;
using Json = nlohmann::json;

namespace {

/// As the Python package tokenizers writes it for an uncased BERT.
Json tokenizer() {
  return Json::parse(R"({
    "version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 0, "content": "[PAD]", "special": true}, {"id": 1, "content": "[UNK]", "special": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                   "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {"[PAD]": 0, "##s": 3, "[UNK]": 1, "caf\u00e9": 4, "a": 2}}})");
}

TokenizerJson parse(const Json& json) { return parse_tokenizer_json(json.dump(), "t.json"); }

std::string refusal(const Json& json) {
  return support::refusal(Failure::model, [&] { parse(json); });
}

/// What is said if the value at `pointer` is another.
std::string refusal(const char* pointer, const Json& value) {
  Json json = tokenizer();
  json[Json::json_pointer(pointer)] = value;
  return refusal(json);
}

}  // namespace

TEST_CASE("tokenizer.json gives the vocabulary in the order of its ids, and whether it is lower-cased") {
  const TokenizerJson uncased = parse(tokenizer());
  CHECK(uncased.vocabulary == "[PAD]\n[UNK]\na\n##s\ncaf\xc3\xa9\n");
  CHECK(uncased.lower_case);
  CHECK(uncased.max_chars_per_word == 100);
  Json json = tokenizer();
  json["normalizer"]["lowercase"] = false;
  CHECK_FALSE(parse(json).lower_case);
  json["normalizer"]["strip_accents"] = false;
  CHECK_FALSE(parse(json).lower_case);
}

TEST_CASE("Lowercase beside a BertNormalizer that lower-cases changes nothing, and in another sequence is refused") {
  const Json bert = tokenizer()["normalizer"], lowercase = {{"type", "Lowercase"}};
  const auto sequence = [](const std::vector<Json>& parts) {
    return Json{{"type", "Sequence"}, {"normalizers", parts}};
  };
  Json json = tokenizer();
  for (const auto& parts : {std::vector{lowercase, bert}, {bert}, {lowercase, lowercase, bert}}) {
    json["normalizer"] = sequence(parts);
    CHECK(parse(json).lower_case);
  }
  Json cased = bert, accented = bert;
  cased["lowercase"] = false;
  accented["strip_accents"] = false;
  for (const auto& parts : {std::vector<Json>{},
                            {lowercase},
                            {lowercase, cased},
                            {bert, lowercase, bert},
                            {{{"type", "StripAccents"}}, bert},
                            {lowercase, Json(3)}})
    CHECK(refusal("/normalizer", sequence(parts))
              .starts_with("t.json: normalizer: expected BertNormalizer, or a Sequence of Lowercase and one with "
                           "\"lowercase\": true, got {"));
  CHECK(refusal("/normalizer", sequence({lowercase, accented})) ==
        "t.json: normalizer.strip_accents: expected true, got false");
}

TEST_CASE("a tokenizer that is no BERT's is refused by the key that says so") {
  CHECK(refusal("/model/type", "BPE") == "t.json: model.type: expected \"WordPiece\", got \"BPE\"");
  CHECK(refusal("/model/continuing_subword_prefix", "@@") ==
        "t.json: model.continuing_subword_prefix: expected \"##\", got \"@@\"");
  CHECK(refusal("/model/unk_token", "<unk>") == "t.json: model.unk_token: expected \"[UNK]\", got \"<unk>\"");
  CHECK(refusal("/pre_tokenizer/type", "Whitespace") ==
        "t.json: pre_tokenizer.type: expected \"BertPreTokenizer\", got \"Whitespace\"");
  CHECK(refusal("/pre_tokenizer", nullptr) == "t.json: pre_tokenizer.type: expected \"BertPreTokenizer\", got null");
  CHECK(refusal("/normalizer/type", "NFC") == "t.json: normalizer.type: expected \"BertNormalizer\", got \"NFC\"");
  CHECK(refusal("/normalizer/lowercase", 1) == "t.json: normalizer.lowercase: expected true or false, got 1");
  CHECK(refusal("/normalizer/strip_accents", false) == "t.json: normalizer.strip_accents: expected true, got false");
  CHECK(refusal("/normalizer/handle_chinese_chars", false) ==
        "t.json: normalizer.handle_chinese_chars: expected true, got false");
  CHECK(refusal("/added_tokens/1", 3) == "t.json: added_tokens: expected a JSON object, got 3");
  CHECK(refusal("/added_tokens/1", {{"content", "<mine>"}}) ==
        "t.json: \"<mine>\": expected the number of a row that no other token has, got null");
}

TEST_CASE("a tokenizer that puts no [CLS] and [SEP] about a text is refused") {
  CHECK_NOTHROW(parse(tokenizer()));
  Json json = tokenizer();
  const Json cls = {{"SpecialToken", {{"id", "[CLS]"}, {"type_id", 0}}}};
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json sep = {{"SpecialToken", {{"id", "[SEP]"}, {"type_id", 0}}}};
  const auto made_of = [](std::vector<Json> pieces) {
    return Json{{"type", "TemplateProcessing"}, {"single", std::move(pieces)}};
  };
  json["post_processor"] = made_of({cls, text, sep});
  CHECK_NOTHROW(parse(json));
  json.erase("post_processor");
  CHECK_NOTHROW(parse(json));

  const std::string expected =
      "t.json: post_processor: expected BertProcessing or a TemplateProcessing that makes [CLS] A [SEP] of a text A, "
      "and [CLS] A [SEP] B [SEP] of two with type 1 from B on, got ";
  CHECK(refusal("/post_processor", nullptr) == expected + "null; hint: beside a vocab.txt it may be another");
  CHECK(refusal("/post_processor/type", "ByteLevel").starts_with(expected + "{"));
  CHECK(refusal("/post_processor", made_of({})).starts_with(expected + "{"));
  CHECK(refusal("/post_processor", made_of({cls, text})).starts_with(expected + "{"));
  CHECK(refusal("/post_processor", made_of({{"[CLS] $A [SEP]"}})).starts_with(expected + "{"));
}

TEST_CASE("a tokenizer.json whose post_processor has other ids, or other types for a pair, than BERT is refused") {
  Json json = tokenizer();
  json["model"]["vocab"].update({{"[CLS]", 5}, {"[SEP]", 6}});
  CHECK(refusal(json) == "t.json: post_processor.cls: expected [\"[CLS]\",5], got [\"[CLS]\",2]");
  json["post_processor"]["cls"][1] = 5;
  CHECK(refusal(json) == "t.json: post_processor.sep: expected [\"[SEP]\",6], got [\"[SEP]\",3]");
  json["post_processor"]["sep"] = {"[SEP]", 6};
  CHECK_NOTHROW(parse(json));

  const auto special = [](const char* id, int type) { return Json{{"SpecialToken", {{"id", id}, {"type_id", type}}}}; };
  const auto text = [](const char* id, int type) { return Json{{"Sequence", {{"id", id}, {"type_id", type}}}}; };
  json["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {special("[CLS]", 0), text("A", 0), special("[SEP]", 0)}},
      {"pair", {special("[CLS]", 0), text("A", 0), special("[SEP]", 0), text("B", 1), special("[SEP]", 1)}},
      {"special_tokens", {{"[CLS]", {{"ids", {5}}}}, {"[SEP]", {{"ids", {6}}}}}}};
  CHECK_NOTHROW(parse(json));
  json["post_processor"]["special_tokens"]["[SEP]"]["ids"] = {5};
  CHECK(refusal(json) == "t.json: post_processor.special_tokens.[SEP].ids: expected [6], got [5]");
  json["post_processor"]["special_tokens"]["[SEP]"]["ids"] = {6};
  json["post_processor"]["pair"][3] = text("B", 0);
  CHECK(refusal(json).starts_with("t.json: post_processor: expected BertProcessing or a TemplateProcessing"));
}

TEST_CASE("ids of tokenizer.json must be 0, 1, 2 and so on, each once") {
  const std::string each = "t.json: model.vocab: expected each id from 0 to 4 once, got ";
  CHECK(refusal("/model/vocab/a", 5) == each + "5 for \"a\"");
  CHECK(refusal("/model/vocab/a", 1).starts_with(each + "1 for "));
  CHECK(refusal("/model/vocab/a", -1) == each + "-1 for \"a\"");
  CHECK(refusal("/model/vocab/a", "2") == each + "\"2\" for \"a\"");
  CHECK(refusal("/model/vocab", Json::object()) == "t.json: model.vocab: expected an object of tokens and ids, got {}");
  CHECK(refusal("/model/vocab", {"a", "b"})
            .starts_with("t.json: model.vocab: expected an object of tokens and ids, got"));
  Json json = tokenizer();
  json["model"]["vocab"]["b\nc"] = 5;
  CHECK(refusal(json) == "t.json: model.vocab: expected tokens of one line, got \"b\\nc\"");
}

TEST_CASE("a directory is no tokenizer.json") {
  CHECK(support::refusal(Failure::model, [&] { read_tokenizer_json("/tmp"); }) ==
        "/tmp: tokenizer: expected a file, got a directory");
}

TEST_CASE("what is no JSON object is no tokenizer.json") {
  for (const char* text : {"", "{", "[1]", "3", "{\"model\": \"x\"}", "\xff"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_tokenizer_json(text, "t.json"), Error);
  }
}
