// What tokenizer_config.json may say.
#include "bert/directory/tokenizer_config.h"

#include <doctest/doctest.h>

#include "io/error.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::bert;
using support::write_text;
namespace fs = std::filesystem;

TEST_CASE("whether text is lower-cased must be said in a boolean") {
  const support::TemporaryDirectory directory;
  CHECK_FALSE(read_tokenizer_config(directory / "").lower_case.has_value());
  const fs::path file = directory / "tokenizer_config.json";
  write_text(file, "{}");
  CHECK_FALSE(read_tokenizer_config(directory / "").lower_case.has_value());
  write_text(file, R"({"do_lower_case": false})");
  CHECK(read_tokenizer_config(directory / "").lower_case == false);
  write_text(file, R"({"do_lower_case": "no"})");
  CHECK_THROWS_WITH_AS(read_tokenizer_config(directory / ""),
                       (file.string() + ": do_lower_case: expected true or false, got \"no\"").c_str(), Error);
  write_text(file, R"({"do_lower_case": false, "do_basic_tokenize": true, "tokenize_chinese_chars": true,
                       "strip_accents": false, "tokenizer_class": null})");
  CHECK(read_tokenizer_config(directory / "").lower_case == false);
  for (const char* other : {R"("strip_accents": false)", R"("tokenize_chinese_chars": false)",
                            R"("do_basic_tokenize": false)", R"("word_tokenizer_type": "mecab")",
                            R"("subword_tokenizer_type": "character")", R"("truncation_side": "left")"}) {
    CAPTURE(other);
    write_text(file, fmt::format("{{\"do_lower_case\": true, {}}}", other));
    CHECK_THROWS_AS(read_tokenizer_config(directory / ""), Error);
  }
  write_text(
      file,
      R"({"cls_token": "[CLS]", "unk_token": {"content": "[UNK]", "special": true}, "sep_token": null, "pad_token": "<pad>"})");
  CHECK_NOTHROW(read_tokenizer_config(directory / ""));
  for (const char* key : {"unk_token", "sep_token", "cls_token", "mask_token"}) {
    write_text(file, fmt::format(R"({{"{}": "[unused0]"}})", key));
    CHECK(support::refusal(Failure::model, [&] {
            read_tokenizer_config(directory / "");
          }).starts_with(fmt::format("{}: {}: expected \"[", file.string(), key)));
  }
  write_text(file, R"({"strip_accents": true})");
  CHECK_NOTHROW(read_tokenizer_config(directory / ""));
  write_text(file, R"({"strip_accents": false})");  // and lower-cased, as no do_lower_case says otherwise
  CHECK_THROWS_AS(read_tokenizer_config(directory / ""), Error);
  write_text(file, "[");
  CHECK_THROWS_AS(read_tokenizer_config(directory / ""), Error);
}

TEST_CASE("special tokens of another name in special_tokens_map.json are refused where transformers reads it") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "tokenizer_config.json", map = directory / "special_tokens_map.json";
  const auto refusal = [&] { return support::refusal(Failure::model, [&] { read_tokenizer_config(directory / ""); }); };
  write_text(map, R"({"cls_token": {"content": "[CLS]"}, "pad_token": "<pad>", "additional_special_tokens": ["<s>"]})");
  CHECK(refusal() == "");
  write_text(map, R"({"cls_token": {"content": "<s>"}})");
  const std::string line = map.string() + ": cls_token: expected \"[CLS]\", got {\"content\":\"<s>\"}";
  CHECK(refusal() == line);
  write_text(file, R"({"cls_token": "[CLS]"})");
  CHECK(refusal() == line);
  write_text(file, R"({"cls_token": "[CLS]", "added_tokens_decoder": {}})");
  CHECK(refusal() == "");
}

TEST_CASE("a tokenizer of another class, or in code of the model's own, is refused by its name") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "tokenizer_config.json";
  const auto refusal = [&](const std::string& text) {
    write_text(file, text);
    const std::string line = support::refusal(Failure::model, [&] { read_tokenizer_config(directory / ""); });
    return line.starts_with(file.string() + ": ") ? line.substr(file.string().size() + 2) : line;
  };
  for (const char* known : {"BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "ElectraTokenizerFast",
                            "MobileBertTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend"})
    CHECK(refusal(fmt::format(R"({{"tokenizer_class": "{}"}})", known)) == "");
  for (const char* other :
       {R"("AlbertTokenizer")", R"("KoBertTokenizer")", R"("MPNetTokenizerFast")", R"("Fast")", "3"})
    CHECK(refusal(fmt::format(R"({{"tokenizer_class": {}}})", other)) ==
          fmt::format("tokenizer_class: expected \"BertTokenizer\" or one that does the same, got {}", other));
  for (const char* none : {"null", R"({"AutoModel": "own.Model"})", R"({"AutoTokenizer": null})"})
    CHECK(refusal(fmt::format(R"({{"tokenizer_class": "BertTokenizer", "auto_map": {}}})", none)) == "");
  const std::string code = "auto_map: expected no tokenizer of its own, which would be code, got [\"own.Words\",null]";
  CHECK(refusal(R"({"auto_map": {"AutoTokenizer": ["own.Words", null]}})") == code);
  CHECK(refusal(R"({"auto_map": ["own.Words", null]})") == code);
}

TEST_CASE("the most tokens of a text are those that a model reads, and at least one piece") {
  const support::TemporaryDirectory directory;
  CHECK_FALSE(read_max_length(directory / "", 16).has_value());
  const auto length = [&](const std::string& value) {
    write_text(directory / "tokenizer_config.json", "{\"model_max_length\": " + value + "}");
    return read_max_length(directory / "", 16).value_or(-1);
  };
  CHECK(length("3") == 3);
  CHECK(length("16") == 16);
  for (const char* none : {"2", "17", "1000000000000000019884624838656", "-5", "\"8\"", "null"})
    CHECK(length(none) == -1);
}
