// Five questions on two contexts, of which Google's run_squad.py makes 17 windows of 32 tokens.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "bert/tasks/squad_features.h"
#include "support/paths.h"

namespace support {

/// The space between "cafés" and "to" is U+202F.
inline const std::string kMiniSquad =
    "{\"data\": [{\"paragraphs\": [{\"context\": \"The leader was John Smith (1895-1943). He was born in Zürich, and "
    "naïvely sold 1,234 cafés\u202fto the Japanese electronics industry before steve Smith's house burned down in "
    "1939.\", \"qas\": [{\"answers\": [{\"answer_start\": 27, \"text\": \"1895\"}], \"id\": \"q1\", \"is_impossible\": "
    "false, \"question\": \"What year was John Smith born?\"}, {\"answers\": [{\"answer_start\": 54, \"text\": "
    "\"Zürich\"}], \"id\": \"q2\", \"is_impossible\": false, \"question\": \"Where was he born?\"}, {\"answers\": "
    "[{\"answer_start\": 98, \"text\": \"Japan\"}], \"id\": \"q3\", \"is_impossible\": false, \"question\": \"What "
    "country bought the unbelievably expensive wonderful restaurants?\"}, {\"answers\": [{\"answer_start\": 135, "
    "\"text\": \"steve Smith's\"}], \"id\": \"q4\", \"is_impossible\": false, \"question\": \"Whose house burned "
    "down?\"}]}, {\"context\": \"Nothing here answers the question at all.\", \"qas\": [{\"answers\": [], \"id\": "
    "\"q5\", \"is_impossible\": true, \"question\": \"Who?\"}]}], \"title\": \"x\"}], \"version\": \"t\"}\n";

/// Its features with the vocabulary of bert-base-uncased.
struct MiniSquad {
  explicit MiniSquad(bool training)
      : tokenizer(bertrand::text::Vocabulary::load(vocabulary())),
        paragraphs(bertrand::tasks::parse_squad(kMiniSquad, "mini.json")),
        features(paragraphs, tokenizer,
                 {.max_seq_length = 32,
                  .doc_stride = 8,
                  .max_query_length = 10,
                  .training = training,
                  .version_2 = true,
                  .threads = 2}) {}

  static std::string vocabulary() { return bertrand::paths::shared + "/data/vocab/bert-base-uncased/vocab.txt"; }

  std::vector<bertrand::tasks::SquadWindow> windows(const bertrand::tasks::SquadExample& example) const {
    bertrand::text::CachingTokenizer caching(tokenizer);
    std::vector<bertrand::tasks::SquadWindow> all;
    features.windows(example, caching, all);
    return all;
  }

  bertrand::text::Tokenizer tokenizer;
  std::vector<bertrand::tasks::SquadParagraph> paragraphs;
  bertrand::tasks::SquadFeatures features;
};

}  // namespace support
