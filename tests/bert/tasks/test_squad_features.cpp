#include "bert/tasks/squad_features.h"

#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "io/sha256.h"
#include "support/mini_squad.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

bool have_vocabulary() {
  if (std::filesystem::exists(support::MiniSquad::vocabulary())) return true;
  MESSAGE("SKIPPED: no vocabulary " << support::MiniSquad::vocabulary());
  return false;
}

/// A line a feature: unique_id example_index doc_span_index input_ids… input_mask… segment_ids… start end
/// is_impossible.
std::string lines(const support::MiniSquad& mini, bool training) {
  std::string text;
  int id = 1'000'000'000, index = 0;
  for (const SquadExample& example : mini.features.examples()) {
    for (const SquadWindow& window : mini.windows(example)) {
      std::vector<int> ids(32, 0), mask(32, 0), types(32, 0);
      for (std::size_t i = 0; i < window.token_ids.size(); ++i) {
        ids[i] = window.token_ids[i];
        mask[i] = 1;
        types[i] = static_cast<int>(i) >= window.context_begin;
      }
      text += fmt::format("{} {} {} {} {} {} {} {} {}\n", id++, index, window.number, fmt::join(ids, " "),
                          fmt::join(mask, " "), fmt::join(types, " "), training ? window.start : -1,
                          training ? window.end : -1, example.is_impossible ? 1 : 0);
    }
    ++index;
  }
  return text;
}

/// A question on "alpha beta" with one answer.
std::vector<SquadParagraph> one_question(SquadAnswer answer) {
  return {{.context = "alpha beta",
           .questions = {{.id = "q", .question = "x", .answers = {std::move(answer)}, .is_impossible = false}}}};
}

SquadFeatures made(const std::vector<SquadParagraph>& paragraphs, const text::Tokenizer& tokenizer, bool version_2) {
  return SquadFeatures(paragraphs, tokenizer, {.training = true, .version_2 = version_2, .file = "f"});
}

const text::Tokenizer& small_tokenizer() {
  static const text::Tokenizer tokenizer(
      text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nalpha\nbeta\nx\n", "vocab"));
  return tokenizer;
}

}  // namespace

TEST_CASE("the features of five questions are those of run_squad.py in training and prediction") {
  if (!have_vocabulary()) return;
  CHECK(bertrand::io::sha256(support::kMiniSquad.substr(0, support::kMiniSquad.size() - 1)) ==
        "37c1d9d15bb41ac63469e5166d0cc62cfb1ec6fd78e899b2791237d050aa90a7");
  CHECK(bertrand::io::sha256(lines(support::MiniSquad(true), true)) ==
        "c58e18925dec99622cf22db897e3959e8e5ccec981dadcfd371935bbdaabfd29");
  CHECK(bertrand::io::sha256(lines(support::MiniSquad(false), false)) ==
        "bea3f9f2cb7af39b31cd9a87718135654c523cb57af0044690e4c4df5ba82a7b");
}

TEST_CASE("an answer is found within its words and only in windows that hold it whole") {
  if (!have_vocabulary()) return;
  const support::MiniSquad mini(true);
  struct Row {
    std::size_t example, tokens;
    int start, end;
  };
  const std::vector<Row> expected = {{0, 32, 15, 15}, {0, 32, 0, 0},   {0, 32, 0, 0}, {0, 27, 0, 0}, {1, 32, 22, 22},
                                     {1, 32, 14, 14}, {1, 32, 0, 0},   {1, 25, 0, 0}, {2, 32, 0, 0}, {2, 32, 0, 0},
                                     {2, 32, 23, 23}, {2, 30, 15, 15}, {3, 32, 0, 0}, {3, 32, 0, 0}, {3, 32, 22, 25},
                                     {3, 25, 14, 17}, {4, 13, 0, 0}};
  std::size_t row = 0;
  for (std::size_t example = 0; example < mini.features.examples().size(); ++example)
    for (const SquadWindow& window : mini.windows(mini.features.examples()[example])) {
      CAPTURE(row);
      REQUIRE(row < expected.size());
      CHECK(expected[row].example == example);
      CHECK(expected[row].tokens == window.token_ids.size());
      CHECK(expected[row].start == window.start);
      CHECK(expected[row].end == window.end);
      ++row;
    }
  CHECK(row == expected.size());
}

TEST_CASE("a piece belongs to the window in which it has most context") {
  if (!have_vocabulary()) return;
  const support::MiniSquad mini(false);
  const auto windows = mini.windows(mini.features.examples()[0]);
  const std::vector<std::string> expected = {"1111111111111110000000", "0000000111111110000000",
                                             "0000000111111110000000", "00000001111111111"};
  REQUIRE(windows.size() == expected.size());
  for (std::size_t i = 0; i < windows.size(); ++i) {
    std::string bits;
    for (const bool bit : windows[i].is_best_window) bits += bit ? '1' : '0';
    CHECK(bits == expected[i]);
  }
}

TEST_CASE("a context without words has no window") {
  const std::vector<SquadParagraph> empty = {{.context = " \n", .questions = {{.id = "q", .question = "x"}}}};
  const SquadFeatures features(empty, small_tokenizer(), {});
  REQUIRE(features.examples().size() == 1);
  text::CachingTokenizer caching(small_tokenizer());
  std::vector<SquadWindow> windows;
  features.windows(features.examples()[0], caching, windows);
  CHECK(windows.empty());
}

TEST_CASE("an answer that is not where the file says is left out with a warning") {
  const auto paragraphs = one_question({.text = "beta", .start = 0});
  const SquadFeatures features = made(paragraphs, small_tokenizer(), false);
  CHECK(features.examples().empty());
  REQUIRE(features.warnings().size() == 1);
  CHECK(features.warnings()[0] == "question q: Could not find answer: 'alpha' vs. 'beta'");
}

TEST_CASE("an answer that begins before the first word begins with the last one, as Python counts") {
  const auto features_of = [](const std::string& context, const SquadAnswer& answer) {
    auto paragraphs = one_question(answer);
    paragraphs[0].context = context;
    return made(paragraphs, small_tokenizer(), false);
  };
  const SquadFeatures two = features_of("  alpha beta", {.text = " alpha", .start = 1});
  REQUIRE(two.warnings().size() == 1);
  CHECK(two.warnings()[0] == "question q: Could not find answer: '' vs. 'alpha'");
  const SquadFeatures last = features_of("  alpha beta", {.text = "  alpha beta", .start = 0});
  REQUIRE(last.warnings().size() == 1);
  CHECK(last.warnings()[0] == "question q: Could not find answer: 'beta' vs. 'alpha beta'");
  const SquadFeatures one = features_of(" alpha", {.text = " alpha", .start = 0});
  REQUIRE(one.examples().size() == 1);
  CHECK(one.examples()[0].first_word == 0);
  CHECK(one.examples()[0].last_word == 0);
}

TEST_CASE("questions that cannot be trained on are refused with their id") {
  const auto refusal = [](const std::vector<SquadParagraph>& paragraphs, bool version_2) {
    return support::refusal(Failure::input, [&] { made(paragraphs, small_tokenizer(), version_2); });
  };
  CHECK(refusal(one_question({.text = "beta", .start = 7}), false) ==
        "f: question q: answer_start: expected an answer within the context's 10 characters, got 7 to 11");
  auto two = one_question({.text = "beta", .start = 6});
  two[0].questions[0].answers.push_back({.text = "alpha", .start = 0});
  CHECK(refusal(two, false) ==
        "f: question q: answers: expected exactly one to train on, got 2; hint: only a file to evaluate "
        "on has several; keep the first of each question");
  auto impossible = one_question({.text = "beta", .start = 6});
  impossible[0].questions[0].answers.clear();
  impossible[0].questions[0].is_impossible = true;
  CHECK(refusal(impossible, false) ==
        "f: question q: answers: expected exactly one to train on, got 0; hint: questions without an answer are of "
        "SQuAD 2.0: "
        "--task squad2 (prepare squad: --version-2)");
  auto silent = one_question({.text = "beta", .start = 6});
  silent[0].questions[0].is_impossible.reset();
  CHECK(refusal(silent, true) == "f: question q: is_impossible: expected true or false, as in SQuAD 2.0, got none");
}

TEST_CASE("a window without room for the context is refused and so is a stride of 0") {
  const auto paragraphs = one_question({.text = "beta", .start = 6});
  CHECK(support::refusal(Failure::usage, [&] {
          SquadFeatures(paragraphs, small_tokenizer(), {.max_seq_length = 67});
        }) == "--max-seq-length: expected more than --max-query-length 64 and 3, got 67");
  CHECK(support::refusal(Failure::usage, [] { SquadOptions{.max_seq_length = 68, .doc_stride = 1}.check(); }) == "");
  CHECK(support::refusal(Failure::usage, [&] { SquadFeatures(paragraphs, small_tokenizer(), {.doc_stride = 0}); }) ==
        "--doc-stride: expected at least 1, got 0");
}

TEST_CASE("an answer without a text has the positions that run_squad.py gives it") {
  const auto positions = [](std::int64_t start) {
    const std::vector<SquadParagraph> paragraphs = one_question({"", start});
    const SquadFeatures features = made(paragraphs, small_tokenizer(), false);
    CHECK(features.warnings().empty());
    REQUIRE(features.examples().size() == 1);
    CHECK(features.examples()[0].answer_is_empty);
    text::CachingTokenizer caching(small_tokenizer());
    std::vector<SquadWindow> windows;
    features.windows(features.examples()[0], caching, windows);
    return std::pair(windows.at(0).start, windows.at(0).end);
  };
  CHECK(positions(0) == std::pair(3, 4));  // Python's place before the first one is the last one
  CHECK(positions(2) == std::pair(3, 3));
  CHECK(positions(5) == std::pair(3, 3));
  CHECK(positions(6) == std::pair(4, 3));  // it ends in the word before
}

TEST_CASE("windows follow each other by the stride, end with the context, and share its pieces by their surroundings") {
  const std::vector<SquadParagraph> paragraphs = {
      {.context = "alpha beta x alpha beta x alpha beta", .questions = {{.id = "q", .question = "x"}}}};
  struct Window {
    std::vector<std::int32_t> ids;
    std::int32_t first_piece;
    std::vector<bool> best;
  };
  const auto check_windows = [&](int stride, const std::vector<Window>& expected) {
    CAPTURE(stride);
    const SquadFeatures features(paragraphs, small_tokenizer(),
                                 {.max_seq_length = 9, .doc_stride = stride, .max_query_length = 5});
    text::CachingTokenizer caching(small_tokenizer());
    std::vector<SquadWindow> windows;
    features.windows(features.examples().at(0), caching, windows);
    REQUIRE(windows.size() == expected.size());
    for (std::size_t i = 0; i < windows.size(); ++i) {
      CAPTURE(i);
      CHECK(windows[i].token_ids == expected[i].ids);
      CHECK(windows[i].number == static_cast<std::int32_t>(i));
      CHECK(windows[i].first_piece == expected[i].first_piece);
      CHECK(windows[i].context_begin == 3);
      CHECK(windows[i].is_best_window == expected[i].best);
    }
  };
  // alpha 5, beta 6, x 7. Piece 3 has one neighbour at least in the first two windows, of which the first counts; piece
  // 5 has one in the last two, of which the second is longer.
  check_windows(2, {{{2, 7, 3, 5, 6, 7, 5, 6, 3}, 0, {true, true, true, true, false}},
                    {{2, 7, 3, 7, 5, 6, 7, 5, 3}, 2, {false, false, true, true, false}},
                    {{2, 7, 3, 6, 7, 5, 6, 3}, 4, {false, false, true, true}}});
  check_windows(5, {{{2, 7, 3, 5, 6, 7, 5, 6, 3}, 0, {true, true, true, true, true}},
                    {{2, 7, 3, 7, 5, 6, 3}, 5, {true, true, true}}});
}

TEST_CASE("an answer within a word is learnt as its own pieces, and one that has none of its own as its words") {
  const text::Tokenizer tokenizer(
      text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nalpha\nbeta\n-\nx\n", "vocab"));
  const auto positions = [&](const std::string& context, const SquadAnswer& answer) {
    auto paragraphs = one_question(answer);
    paragraphs[0].context = context;
    const SquadFeatures features = made(paragraphs, tokenizer, false);
    REQUIRE(features.examples().size() == 1);
    text::CachingTokenizer caching(tokenizer);
    std::vector<SquadWindow> windows;
    features.windows(features.examples()[0], caching, windows);
    return std::pair(windows.at(0).start, windows.at(0).end);
  };
  for (const std::string context : {"x alpha-beta x", "x alpha-beta"}) {  // the context's pieces begin at 3
    CAPTURE(context);
    CHECK(positions(context, {"alpha", 2}) == std::pair(4, 4));
    CHECK(positions(context, {"beta", 8}) == std::pair(6, 6));
    CHECK(positions(context, {"alpha-beta", 2}) == std::pair(4, 6));
    CHECK(positions(context, {"bet", 8}) == std::pair(4, 6));
  }
  CHECK(positions("beta alpha", {"b", 0}) == std::pair(3, 3));
  CHECK(positions("alpha x", {"", 0}) == std::pair(3, 4));  // as Python counts, it ends with the context
}

TEST_CASE("a piece belongs to a window that holds it though a much longer one ends before it") {
  std::string context;
  for (int i = 0; i < 160; ++i) context += "alpha ";
  const std::vector<SquadParagraph> paragraphs = {{.context = context, .questions = {{.id = "q", .question = "x"}}}};
  const SquadFeatures features(paragraphs, small_tokenizer(),
                               {.max_seq_length = 154, .doc_stride = 200, .max_query_length = 5});
  text::CachingTokenizer caching(small_tokenizer());
  std::vector<SquadWindow> windows;
  features.windows(features.examples().at(0), caching, windows);
  REQUIRE(windows.size() == 2);
  CHECK(windows[0].is_best_window == std::vector<bool>(150, true));
  CHECK(windows[1].is_best_window == std::vector<bool>(10, true));
}

TEST_CASE("a blank answer to a context without words is left out with a warning") {
  auto paragraphs = one_question({.text = " ", .start = 0});
  paragraphs[0].context = " ";
  const SquadFeatures features = made(paragraphs, small_tokenizer(), false);
  CHECK(features.examples().empty());
  CHECK(features.warnings().size() == 1);
}
