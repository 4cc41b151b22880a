// tokenizer.json as it is written, against the one that transformers writes.
#include <doctest/doctest.h>

#include <optional>

#include "bert/directory/model_directory.h"
#include "bert/directory/tokenizer_json.h"
#include "support/small_model.h"
#include "support/terminal.h"

using namespace bertrand;
using namespace bertrand::bert;

namespace {

// The package tokenizers (0.23) reads it and writes the same bytes.
constexpr const char* kWritten = R"({
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [
    {
      "id": 0,
      "content": "[UNK]",
      "single_word": false,
      "lstrip": false,
      "rstrip": false,
      "normalized": false,
      "special": true
    },
    {
      "id": 1,
      "content": "<e>",
      "single_word": true,
      "lstrip": false,
      "rstrip": false,
      "normalized": true,
      "special": false
    },
    {
      "id": 2,
      "content": "[CLS]",
      "single_word": false,
      "lstrip": false,
      "rstrip": false,
      "normalized": false,
      "special": true
    },
    {
      "id": 3,
      "content": "[SEP]",
      "single_word": false,
      "lstrip": false,
      "rstrip": false,
      "normalized": false,
      "special": true
    },
    {
      "id": 6,
      "content": "<f>",
      "single_word": false,
      "lstrip": false,
      "rstrip": false,
      "normalized": false,
      "special": true
    }
  ],
  "normalizer": {
    "type": "BertNormalizer",
    "clean_text": true,
    "handle_chinese_chars": true,
    "strip_accents": null,
    "lowercase": false
  },
  "pre_tokenizer": {
    "type": "BertPreTokenizer"
  },
  "post_processor": {
    "type": "TemplateProcessing",
    "single": [
      {
        "SpecialToken": {
          "id": "[CLS]",
          "type_id": 0
        }
      },
      {
        "Sequence": {
          "id": "A",
          "type_id": 0
        }
      },
      {
        "SpecialToken": {
          "id": "[SEP]",
          "type_id": 0
        }
      }
    ],
    "pair": [
      {
        "SpecialToken": {
          "id": "[CLS]",
          "type_id": 0
        }
      },
      {
        "Sequence": {
          "id": "A",
          "type_id": 0
        }
      },
      {
        "SpecialToken": {
          "id": "[SEP]",
          "type_id": 0
        }
      },
      {
        "Sequence": {
          "id": "B",
          "type_id": 1
        }
      },
      {
        "SpecialToken": {
          "id": "[SEP]",
          "type_id": 1
        }
      }
    ],
    "special_tokens": {
      "[CLS]": {
        "id": "[CLS]",
        "ids": [
          2
        ],
        "tokens": [
          "[CLS]"
        ]
      },
      "[SEP]": {
        "id": "[SEP]",
        "ids": [
          3
        ],
        "tokens": [
          "[SEP]"
        ]
      }
    }
  },
  "decoder": {
    "type": "WordPiece",
    "prefix": "##",
    "cleanup": true
  },
  "model": {
    "type": "WordPiece",
    "unk_token": "[UNK]",
    "continuing_subword_prefix": "##",
    "max_input_chars_per_word": 200,
    "vocab": {
      "[UNK]": 0,
      "<e>": 1,
      "[CLS]": 2,
      "[SEP]": 3,
      "é\"\\": 4,
      "##s": 5
    }
  }
}
)";

}  // namespace

TEST_CASE("tokenizer.json is written as transformers writes it, with the ids of all added tokens in their order") {
  const text::TokenizerOptions options{
      .lower_case = false,
      .added_tokens = {{.text = "<e>", .id = 1, .normalized = true, .single_word = true},
                       {.text = "<f>", .id = 6, .special = true}}};
  // White space about a token is not a part of it, and the last line may lack its end.
  CHECK(tokenizer_json_text("[UNK]\n<e>\n[CLS]\r\n[SEP]\né\"\\\n##s", options) == std::string(kWritten));
}

TEST_CASE("the tokenizer that a directory's tokenizer.json alone describes is the one that all of its files describe") {
  for (const bool lower_case : {true, false})
    for (const int longest : {100, 200, 300}) {
      const support::TemporaryDirectory directory;
      const bert::Config config{.vocab_size = 16};
      const text::TokenizerOptions options{
          .lower_case = lower_case,
          .max_chars_per_word = longest,
          .added_tokens = {{.text = "red", .id = 5, .normalized = true}, {.text = "<e>", .id = 15, .special = true}}};
      write_configuration(io::Files::system(), directory / "",
                          {.config = config, .vocabulary = support::kSmallVocabulary, .tokenizer = options});
      const auto check = [&] {
        const text::Tokenizer read = read_tokenizer(directory / "", {}, config);
        CHECK(read.vocabulary().text() == support::kSmallVocabulary);
        CHECK(read.vocabulary().token(15) == "<e>");
        CHECK(read.options().lower_case == lower_case);
        CHECK(read.options().max_chars_per_word == longest);
        CHECK(read.options().added_tokens == options.added_tokens);
      };
      CHECK(support::on_standard_error(check) == "");
      std::filesystem::remove(directory / "vocab.txt");
      std::filesystem::remove(directory / "tokenizer_config.json");
      CHECK(support::on_standard_error(check) == "");
    }
}

TEST_CASE("a vocabulary that tokenizer.json cannot hold is in vocab.txt alone, and read without a warning") {
  const auto written = [](const std::string& line) {
    const support::TemporaryDirectory directory;
    const bert::Config config{.vocab_size = 17};
    const std::string lines = support::kSmallVocabulary + line + "\nlast\n";
    write_configuration(io::Files::system(), directory / "", {.config = config, .vocabulary = lines, .tokenizer = {}});
    const auto check = [&] { CHECK(read_tokenizer(directory / "", {}, config).vocabulary().find("last") == 16); };
    CHECK(support::on_standard_error(check) == "");
    return std::filesystem::exists(directory / "tokenizer.json");
  };
  CHECK(written("word"));
  for (const char* blank : {"", " ", "\u2028"}) CHECK(written(blank));  // the last is in bert-base-chinese
  CHECK_FALSE(written("a\rb"));
  CHECK_FALSE(tokenizer_json_text(support::kSmallVocabulary + "\n\n", {}));
  CHECK_FALSE(tokenizer_json_text(support::kSmallVocabulary + "\n\xFF\n", {}));  // blank without what is no UTF-8
  CHECK_FALSE(tokenizer_json_text(support::kSmallVocabulary + std::string("a\0b\n", 4), {}));
  CHECK(tokenizer_json_text("[UNK]\n[CLS]\n[SEP]\n", {}));
  for (const char* lines : {"", "[CLS]\n[SEP]\n", "[UNK]\n[SEP]\n", "[UNK]\n[CLS]\n"})
    CHECK_FALSE(tokenizer_json_text(lines, {}));
}

TEST_CASE("the room for the words of a model is that of vocab.txt and tokenizer.json") {
  const support::TemporaryDirectory directory;
  const bert::Config config{.vocab_size = 15};
  const DirectoryFiles files{.config = config, .vocabulary = support::kSmallVocabulary, .tokenizer = {}};
  write_configuration(io::Files::system(), directory / "", files);
  CHECK(vocabulary_bytes(files) ==
        std::filesystem::file_size(directory / "vocab.txt") + std::filesystem::file_size(directory / "tokenizer.json"));
  CHECK(vocabulary_bytes({.config = config, .vocabulary = "[PAD]\n", .tokenizer = {}}) == 6);
}
