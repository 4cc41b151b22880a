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
  for (const char* other :
       {R"("strip_accents": false)", R"("tokenize_chinese_chars": false)", R"("do_basic_tokenize": false)",
        R"("word_tokenizer_type": "mecab")", R"("subword_tokenizer_type": "character")"}) {
    CAPTURE(other);
    write_text(file, fmt::format("{{\"do_lower_case\": true, {}}}", other));
    CHECK_THROWS_AS(read_tokenizer_config(directory / ""), Error);
  }
  write_text(
      file,
      R"({"cls_token": "[CLS]", "unk_token": {"content": "[UNK]", "special": true}, "sep_token": null, "pad_token": "<pad>"})");
  CHECK_NOTHROW(read_tokenizer_config(directory / ""));
  for (const char* key : {"unk_token", "sep_token", "cls_token"}) {
    write_text(file, fmt::format(R"({{"{}": "[unused0]"}})", key));
    CHECK(support::refusal(Failure::model, [&] {
            read_tokenizer_config(directory / "");
          }).starts_with(fmt::format("{}: {}: expected \"[", file.string(), key)));
  }
  write_text(file, "[");
  CHECK_THROWS_AS(read_tokenizer_config(directory / ""), Error);
}
