#include "bert/tasks/squad_answers.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "support/mini_squad.h"
#include "support/program.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

bool have_vocabulary() {
  if (std::filesystem::exists(support::MiniSquad::vocabulary())) return true;
  MESSAGE("SKIPPED: no vocabulary " << support::MiniSquad::vocabulary());
  return false;
}

/// The answers for logits with many ties: of feature k at position i (37 i + 11 k) mod 23 - 11 for a beginning and
/// (53 i + 7 k) mod 29 - 14 for an end, over all 32 positions.
std::vector<Answer> answers(const support::MiniSquad& mini, bool version_2, double threshold = 0) {
  std::vector<Answer> all;
  int k = 0;
  for (const SquadExample& example : mini.features.examples()) {
    std::vector<ScoredWindow> scored;
    for (SquadWindow& window : mini.windows(example)) {
      ScoredWindow with{.window = std::move(window), .start = {}, .end = {}};
      for (int i = 0; i < 32; ++i) {
        with.start.push_back((37 * i + 11 * k) % 23 - 11);
        with.end.push_back((53 * i + 7 * k) % 29 - 14);
      }
      scored.push_back(std::move(with));
      ++k;
    }
    all.push_back(best_answer(
        mini.features.context(example), scored, mini.tokenizer,
        {.n_best_size = 5, .max_answer_length = 10, .version_2 = version_2, .null_score_diff_threshold = threshold}));
  }
  return all;
}

void check_entry(const AnswerCandidate& got, const std::string& text, double probability, double start, double end) {
  CHECK(got.text == text);
  CHECK(got.probability == doctest::Approx(probability).scale(0).epsilon(1e-5));
  CHECK(got.start_logit == start);
  CHECK(got.end_logit == end);
}

}  // namespace

TEST_CASE("logits full of ties give the answers of write_predictions") {
  if (!have_vocabulary()) return;
  const support::MiniSquad mini(false);
  const std::vector<std::string> texts = {")", "sold", "John Smith (1895-1943). He", "born in Zürich,",
                                          "the question at all."};
  const std::vector<double> odds = {-48, -34, -38, -39, -9};
  for (const bool version_2 : {false, true}) {
    CAPTURE(version_2);
    const std::vector<Answer> all = answers(mini, version_2);
    REQUIRE(all.size() == texts.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      CHECK(all[i].text == texts[i]);
      if (version_2) CHECK(all[i].null_odds == odds[i]);
    }
  }
  CHECK(answers(mini, true, odds[1])[1].text == texts[1]);  // as likely as the threshold is not above it
  CHECK(answers(mini, true, odds[1] - 1)[1].text == "");
  const Answer first = answers(mini, false)[0];
  REQUIRE(first.n_best.size() >= 3);
  check_entry(first.n_best[0], ")", 0.404610, 11, 12);
  check_entry(first.n_best[1], "). He was born in Zürich", 0.148848, 11, 11);
  check_entry(first.n_best[2], "Smith (1895-1943)", 0.148848, 10, 12);
  const Answer last = answers(mini, true)[4];
  REQUIRE(last.n_best.size() == 2);
  check_entry(last.n_best[0], "the question at all.", 0.999877, last.n_best[0].start_logit, last.n_best[0].end_logit);
  check_entry(last.n_best[1], "", 0.00012339458, 4, 11);
}

TEST_CASE("the text of an answer is the part of the original that its pieces come from") {
  if (!have_vocabulary()) return;
  const text::Tokenizer tokenizer(text::Vocabulary::load(support::MiniSquad::vocabulary()));
  CHECK(final_text("steve smith", "Steve Smith's", tokenizer) == "Steve Smith");
  CHECK(final_text("1895", "(1895-1943).", tokenizer) == "1895");
  CHECK(final_text("zurich", "Zürich,", tokenizer) == "Zürich");
  CHECK(final_text("abc", "xyz", tokenizer) == "xyz");
}

TEST_CASE("if pieces have places, an answer is the part from its first to its last piece, and equal texts are apart") {
  const text::Tokenizer tokenizer(
      text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nand\n/\nor\n?\n", "vocab"));
  const std::vector<SquadParagraph> paragraphs = {{.context = "  And/or/and", .questions = {{.question = "?"}}}};
  const auto answer_of = [&](bool places, bool version_2, int n_best_size = 3) {
    const SquadFeatures features(paragraphs, tokenizer, {.max_query_length = 4, .places = places});
    const SquadExample& example = features.examples().front();
    std::vector<SquadWindow> windows;
    text::CachingTokenizer caching(tokenizer);
    features.windows(example, caching, windows);
    const ScoredWindow scored{.window = windows.at(0),
                              .start = {1, 0, 0, 5, 0, 0, 0, 6, 0},  // [CLS] ? [SEP] and / or / and [SEP]
                              .end = {1, 0, 0, 5, 0, 0, 0, 6, 0}};
    return best_answer(features.context(example), {&scored, 1}, tokenizer,
                       {.n_best_size = n_best_size, .max_answer_length = 5, .version_2 = version_2});
  };
  const std::string_view context = paragraphs.front().context;
  for (const bool version_2 : {false, true}) {
    const Answer answer = answer_of(true, version_2);
    CHECK(answer.text == "and");
    REQUIRE(answer.n_best.size() == std::size_t{3} + version_2);
    CHECK(answer.n_best[0].place.data() - context.data() == 9);
    CHECK(answer.n_best[0].text == "and");
    CHECK(answer.n_best[1].text == "And/or/and");
    CHECK(answer.n_best[2].place.data() - context.data() == 2);
    CHECK(answer.n_best[2].text == "And");
    if (version_2) CHECK(answer.n_best[3].place.empty());
  }
  const Answer with_null = answer_of(true, true, 4);  // which is one of the four best, and no part of the text
  REQUIRE(with_null.n_best.size() == 4);
  CHECK(with_null.n_best[3].place.data() == nullptr);
  CHECK(with_null.n_best[3].text == "");
  // The script looks for the words, of which the first ones are the answer.
  const Answer script = answer_of(false, false);
  CHECK(script.text == "And");
  CHECK(script.n_best[0].place.empty());
}

TEST_CASE("a text without blanks is not read again for every candidate") {
  const text::Tokenizer tokenizer(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n,\n!\n", "vocab"));
  // One word, whose pieces are commas but for the last one, which no model finds likely.
  const auto texts_of = [&](std::size_t commas) {
    const std::string word = std::string(commas, ',') + "!";
    const SquadContext context{
        .words = {word}, .pieces = {5, 5, 5, 5, 6}, .word_of_piece = {0, 0, 0, 0, 0}, .first_piece = {0}};
    const ScoredWindow scored{.window = {.token_ids = {2, 1, 3, 5, 5, 5, 5, 6, 3},
                                         .context_begin = 3,
                                         .is_best_window = std::vector<bool>(5, true)},
                              .start = {0, 0, 0, 9, 9, 9, 9, 1, 0},
                              .end = {0, 0, 0, 9, 9, 9, 9, 1, 0}};
    std::vector<std::string> texts;
    for (const AnswerCandidate& found :
         best_answer(context, {&scored, 1}, tokenizer, {.n_best_size = 5, .max_answer_length = 1}).n_best)
      texts.push_back(found.text);
    return texts;
  };
  CHECK(texts_of(4) == std::vector<std::string>{",", "!"});
  CHECK(texts_of(200'000) == std::vector<std::string>{",", "!"});
  CHECK(texts_of(500'000) == std::vector<std::string>{","});
}

TEST_CASE("a question without a window has the answer that the scripts give") {
  const text::Tokenizer tokenizer(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", "vocab"));
  const SquadContext context;
  const Answer answer = best_answer(context, {}, tokenizer, {});
  CHECK(answer.text == "empty");
  REQUIRE(answer.n_best.size() == 1);
  CHECK(answer.n_best[0].probability == 1);
  const Answer with_null = best_answer(context, {}, tokenizer, {.version_2 = true});
  CHECK(with_null.text == "");
  REQUIRE(with_null.n_best.size() == 2);
  CHECK(with_null.n_best[0].text == "empty");
  CHECK(with_null.n_best[1].text == "");
  CHECK(with_null.n_best[1].probability == 0.5);
}

TEST_CASE("the files of answers are those of json.dumps with an indent of 4") {
  const support::TemporaryDirectory directory;
  const auto read = [&](const std::string& name) { return support::read_text(directory / name); };
  AnswerFiles(io::Files::system(), {.directory = directory / "", .prefix = "none_"}).publish();
  CHECK(read("none_predictions.json") == "{}\n");
  AnswerFiles files(io::Files::system(), {.directory = directory / "", .version_2 = true});
  files.add("a", {.text = "é", .n_best = {{"é", 0.75, 1.5, 2}, {"", 0.25, 0, 0}}, .null_odds = -3.5});
  files.add("b", {.text = "", .n_best = {{"empty", 1, 0, 0}}, .null_odds = 0});
  CHECK_FALSE(std::filesystem::exists(files.predictions()));
  files.publish();
  CHECK(read("predictions.json") == "{\n    \"a\": \"\\u00e9\",\n    \"b\": \"\"\n}\n");
  CHECK(read("null_odds.json") == "{\n    \"a\": -3.5,\n    \"b\": 0.0\n}\n");
  CHECK_FALSE(std::filesystem::exists(directory / "none_null_odds.json"));
  CHECK(read("nbest_predictions.json") == R"({
    "a": [
        {
            "text": "\u00e9",
            "probability": 0.75,
            "start_logit": 1.5,
            "end_logit": 2.0
        },
        {
            "text": "",
            "probability": 0.25,
            "start_logit": 0.0,
            "end_logit": 0.0
        }
    ],
    "b": [
        {
            "text": "empty",
            "probability": 1.0,
            "start_logit": 0.0,
            "end_logit": 0.0
        }
    ]
}
)");
}

namespace {

const text::Tokenizer& letters() {
  static const text::Tokenizer tokenizer(
      text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n", "vocab"));
  return tokenizer;
}

}  // namespace

TEST_CASE(
    "answers come from the context, each from the window it is best seen in, by falling score and then in order") {
  const SquadContext context{.words = {"a", "b", "c", "d"},
                             .pieces = {5, 6, 7, 8},
                             .word_of_piece = {0, 1, 2, 3},
                             .first_piece = {0, 1, 2, 3}};
  // [CLS] ? [SEP] a b c [SEP] and [CLS] ? [SEP] b c d [SEP]: a and b count in the first one, c and d in the second.
  std::vector<ScoredWindow> windows = {
      {.window = {.token_ids = {2, 1, 3, 5, 6, 7, 3}, .context_begin = 3, .is_best_window = {true, true, false}},
       .start = {2, 0, 9, 4, 3, 6, 9},
       .end = {2.5, 0, 9, 0, 5, 1, 9}},
      {.window = {.token_ids = {2, 1, 3, 6, 7, 8, 3},
                  .context_begin = 3,
                  .number = 1,
                  .first_piece = 1,
                  .is_best_window = {false, true, true}},
       .start = {3, 0, 9, 7, 3, 1, 9},
       .end = {2, 0, 9, 0, 4, 4, 9}}};
  const auto answer_of = [&](bool version_2, double threshold) {
    return best_answer(
        context, windows, letters(),
        {.n_best_size = 9, .max_answer_length = 2, .version_2 = version_2, .null_score_diff_threshold = threshold});
  };
  const auto texts_of = [](const Answer& answer) {
    std::vector<std::string> texts;
    for (const AnswerCandidate& entry : answer.n_best) texts.push_back(entry.text);
    return texts;
  };
  const Answer first = answer_of(false, 0);
  CHECK(first.text == "a b");
  CHECK(texts_of(first) == std::vector<std::string>{"a b", "b", "c", "c d", "d", "a", "b c"});
  CHECK(first.n_best[2].start_logit == 3);  // of the second window
  const Answer second = answer_of(true, 0);
  CHECK(second.text == "a b");
  CHECK(second.null_odds == -4.5);  // the null answer of the first window, where it is less likely
  CHECK(texts_of(second) == std::vector<std::string>{"a b", "b", "c", "c d", "d", "", "a", "b c"});
  CHECK(second.n_best[5].start_logit == 2);
  CHECK(second.n_best[5].end_logit == 2.5);
  const double sum = 1 + std::exp(-1) + 2 * std::exp(-2) + std::exp(-4) + std::exp(-4.5) + 2 * std::exp(-5);
  CHECK(second.n_best[0].probability == doctest::Approx(1 / sum));
  CHECK(second.n_best[1].probability == doctest::Approx(std::exp(-1) / sum));
  CHECK(second.n_best[5].probability == doctest::Approx(std::exp(-4.5) / sum));
  CHECK(answer_of(true, -4.5).text == "a b");
  CHECK(answer_of(true, -5).text == "");
  // What is added to all logits changes nothing, however large they are.
  for (ScoredWindow& scored : windows)
    for (std::vector<double>* logits : {&scored.start, &scored.end})
      for (double& logit : *logits) logit += 500;
  const Answer third = answer_of(true, 0);
  CHECK(third.null_odds == -4.5);
  CHECK(texts_of(third) == texts_of(second));
  CHECK(third.n_best[0].probability == doctest::Approx(1 / sum));
  // The first of two windows whose null answers are as likely.
  windows[1].start[0] = 502.5;
  windows[1].end[0] = 502;
  CHECK(answer_of(true, 0).n_best[5].start_logit == 502);
}

TEST_CASE("a part of a text is found behind others, and all of it stands for what its words do not tell") {
  CHECK(final_text("b", "a B, c", letters()) == "B");
  CHECK(final_text("b c", "a b c d", letters()) == "b c");
  const std::string invisible = "a\u200Bb c";  // the tokenizer takes the space without width away
  CHECK(final_text("c", invisible, letters()) == invisible);
  CHECK(final_text("", "a b", letters()) == "a b");
  CHECK(final_text(" b", "a b", letters()) == "a b");  // it begins at no character of a word
}

TEST_CASE("answers of more than a megabyte are in their files once each") {
  const support::TemporaryDirectory directory;
  AnswerFiles files(io::Files::system(), {.directory = directory / "", .version_2 = true});
  std::map<std::string, std::string> texts;
  for (const char letter : {'x', 'y', 'z'}) {
    const std::string id(1, letter), text(600'000, letter);
    files.add(id, {.text = text, .n_best = {{text, 1, 0, 0}}, .null_odds = -1});
    texts[id] = text;
  }
  files.publish();
  const auto read = [&](const std::string& name) {
    return nlohmann::json::parse(support::read_text(directory / name), nullptr, /*allow_exceptions=*/false);
  };
  const nlohmann::json answers = read("predictions.json"), n_best = read("nbest_predictions.json");
  REQUIRE(answers.is_object());
  REQUIRE(n_best.is_object());
  CHECK(answers.size() == 3);
  CHECK(n_best.size() == 3);
  for (const auto& [id, text] : texts) {
    CHECK((answers.at(id) == text));
    CHECK((n_best.at(id).at(0).at("text") == text));
  }
}

TEST_CASE("an answer that begins within a word is that part of it") {
  const text::Tokenizer tokenizer(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n##b\n", "vocab"));
  const SquadContext context{.words = {"ab"}, .pieces = {5, 6}, .word_of_piece = {0, 0}, .first_piece = {0}};
  const ScoredWindow scored{
      .window = {.token_ids = {2, 1, 3, 5, 6, 3}, .context_begin = 3, .is_best_window = {true, true}},
      .start = {0, 0, 0, 0, 9, 0},
      .end = {0, 0, 0, 0, 9, 0}};
  CHECK(best_answer(context, {&scored, 1}, tokenizer, {.n_best_size = 1}).text == "b");
}
