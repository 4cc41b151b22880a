#include "bert/text/added_tokens.h"
#include "bert/text/tokenizer.h"
#include "bert/text/words.h"
#include "support/growth.h"
#include "support/paths.h"

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

using namespace bertrand::text;
using Ids = std::vector<std::int32_t>;
using Strings = std::vector<std::string>;

namespace {

const std::string kData = bertrand::paths::shared + "/data/";

bool have_data() {
  if (std::filesystem::exists(kData + "vocab")) return true;
  MESSAGE("SKIPPED: no data in " << kData);
  return false;
}

Tokenizer official(const std::string& name, const TokenizerOptions& options) {
  return Tokenizer(Vocabulary::load(kData + "vocab/" + name + "/vocab.txt"), options);
}

// The vocabulary of Google's tokenization_test.py.
Tokenizer toy(const TokenizerOptions& options = {}) {
  return Tokenizer(Vocabulary::parse("[UNK]\n[CLS]\n[SEP]\nwant\n##want\n##ed\nwa\nun\nrunn\n##ing\n,\n", "toy",
                                     {.require_specials = false}),
                   options);
}

/// The pieces that the ids of a text stand for.
Strings pieces(const Tokenizer& tokenizer, std::string_view text) {
  Strings pieces;
  for (const std::int32_t id : tokenizer.encode(text)) pieces.emplace_back(tokenizer.vocabulary().token(id));
  return pieces;
}

}  // namespace

TEST_CASE("Google's own examples of tokenizing") {
  CHECK(pieces(toy(), "UNwant\u00E9d,running") == Strings{"un", "##want", "##ed", ",", "runn", "##ing"});
  CHECK(toy().encode("UNwant\u00E9d,running") == Ids{7, 4, 5, 10, 8, 9});
  CHECK(toy().words(" \tHeLLo!how  \n Are yoU?  ") == Strings{"hello", "!", "how", "are", "you", "?"});
  CHECK(toy({.lower_case = false}).words(" \tHeLLo!how  \n Are yoU?  ") ==
        Strings{"HeLLo", "!", "how", "Are", "yoU", "?"});
  CHECK(toy().words("H\u00E9llo") == Strings{"hello"});
  CHECK(toy().words("ah\u535A\u63A8zz") == Strings{"ah", "\u535A", "\u63A8", "zz"});
  CHECK(pieces(toy(), "unwantedX running") == Strings{"[UNK]", "runn", "##ing"});
  CHECK(toy().encode("").empty());
}

TEST_CASE("the first line of a vocabulary may be any piece") {
  const auto ids = [](const std::string& lines, std::string_view text) {
    return Tokenizer(Vocabulary::parse(lines, "v", {.require_specials = false})).encode(text);
  };
  CHECK(ids("a\n[UNK]\n##b\n", "a ab b") == Ids{0, 0, 2, 1});
  CHECK(ids("##b\n[UNK]\na\n", "a abb") == Ids{2, 2, 0, 0});
}

TEST_CASE("characters that are dropped, and white space that only Python knows") {
  CHECK(toy().words("c\u0085d\u001Ce") == Strings{"cde"});
  CHECK(toy().words("a \u00ADb\u200Dc") == Strings{"a", "bc"});
  CHECK(toy().words("a\u2028b\u3000c\u00A0d") == Strings{"a", "b", "c", "d"});
  CHECK(toy().words("\uFEFFa\uFFFD\r") == Strings{"a"});
  CHECK(toy().words(std::string_view("a\0b", 3)) == Strings{"ab"});
  CHECK(toy().words("\u0301\u0302").empty());
  CHECK(toy().words(std::string_view("\u00E9ab").substr(0, 3)) == Strings{"ea"});  // what is behind it is no part of it
}

TEST_CASE("as in Google's code, and not in transformers, private use is kept and late ideographs are words") {
  CHECK(pieces(toy(), "\uF0B7 un") == Strings{"[UNK]", "un"});  // a bullet of Word
  CHECK(toy().words("a\uF0B7b") == Strings{"a\uF0B7b"});
  for (const char* ideograph : {"\U0002B820", "\U0002B91F"})
    CHECK(toy().words(std::string("a") + ideograph + "b") == Strings{"a", ideograph, "b"});
}

TEST_CASE("known strings of the official uncased vocabulary") {
  if (!have_data()) return;
  const Tokenizer tokenizer = official("bert-base-uncased", {});
  const std::vector<std::pair<std::string, Ids>> known = {
      {"UNwant\u00E9d,running", {18162, 1010, 2770}},
      {"John Johanson's house", {2198, 13093, 3385, 1005, 1055, 2160}},
      {"\uFB01ne \u0130stanbul STRASSE\u00DF", {1984, 2638, 9960, 2358, 8180, 3366, 19310}},
      {"\uD55C\uAD6D\uC5B4 \u65E5\u672C\u8A9E \u3072\u3089\u304C\u306A",
       {1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008, 1864, 1876, 1950, 1673, 30211, 30177, 30193}},
      {"$1,234.56 e=mc^2 #tag", {1002, 1015, 1010, 22018, 1012, 5179, 1041, 1027, 11338, 1034, 1016, 1001, 6415}},
      {"10\u00BD \u00B2", {2184, 13714, 1082}},
      {std::string(200, 'x') + " " + std::string(201, 'x'), {}},
  };
  for (const auto& each : known) {  // clang 14: a message captures no structured binding
    if (!each.second.empty()) CHECK_MESSAGE(tokenizer.encode(each.first) == each.second, each.first);
  }
  CHECK(tokenizer.encode(std::string(201, 'x')) == Ids{100});
  CHECK(tokenizer.encode(std::string(200, 'x')).size() > 1);
}

TEST_CASE("all golden strings have their ids") {
  if (!have_data()) return;
  std::map<std::string, Tokenizer> tokenizers;
  std::ifstream file(kData + "golden_tokenization/cases.jsonl");
  int cases = 0, with_special_tokens = 0;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json golden = nlohmann::json::parse(line);
    const bool keep = !golden.at("agrees_with_google_algorithm").get<bool>();
    const std::string name = golden.at("vocab");
    const std::string key = name + (golden.at("lower").get<bool>() ? " lower" : "") + (keep ? " keep" : "");
    if (!tokenizers.contains(key)) {
      tokenizers.emplace(key, official(name, {.lower_case = golden.at("lower"), .keep_special_tokens = keep}));
    }
    Ids expected = golden.at("ids");
    if (golden.at("special_tokens_added")) {
      const Vocabulary& vocabulary = tokenizers.at(key).vocabulary();
      REQUIRE(expected.size() >= 2);
      CHECK(expected.front() == vocabulary.cls_id());
      CHECK(expected.back() == vocabulary.sep_id());
      expected = Ids(expected.begin() + 1, expected.end() - 1);
    }
    Ids got = tokenizers.at(key).encode(golden.at("text").get<std::string>());
    // If the recorded run cut its input, only the beginning can be compared.
    if (golden.contains("truncated_to") && got.size() > expected.size()) got.resize(expected.size());
    CHECK_MESSAGE(got == expected, line);
    ++cases;
    with_special_tokens += keep;
  }
  CHECK(cases == 339);
  CHECK(with_special_tokens == 3);
}

TEST_CASE("3,000 questions have their words, pieces and ids") {
  if (!have_data()) return;
  const Tokenizer tokenizer = official("bert-base-uncased", {});
  CachingTokenizer caching(tokenizer);
  std::ifstream file(kData + "golden_tokenization/squad_questions_first3000.jsonl");
  int questions = 0;
  for (std::string line; std::getline(file, line); ++questions) {
    const nlohmann::json golden = nlohmann::json::parse(line);
    const std::string text = golden.at("text");
    const auto ids = caching.encode(text);
    REQUIRE_MESSAGE(Ids(ids.begin(), ids.end()) == golden.at("ids").get<Ids>(), text);
    if (questions % 10 != 0) continue;
    REQUIRE(tokenizer.words(text) == golden.at("basic").get<Strings>());
    REQUIRE(pieces(tokenizer, text) == golden.at("wordpiece").get<Strings>());
  }
  CHECK(questions == 3000);
}

TEST_CASE("literal special tokens are kept whole only where asked for") {
  const Vocabulary vocabulary = Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n[\n]\nmask\n", "v");
  CHECK(Tokenizer(vocabulary).encode("a[MASK]a") == Ids{5, 6, 8, 7, 5});
  const Tokenizer keeping(vocabulary, {.keep_special_tokens = true});
  CHECK(keeping.encode("a[MASK]a [SEP][mask] [[PAD]") == Ids{5, 4, 5, 3, 6, 8, 7, 6, 0});
  DroppedBytes dropped;
  CHECK(keeping.encode("[MASK] a\xFF[MASK]\xFF", &dropped) == Ids{4, 5, 4});
  CHECK(dropped.count == 2);
  CHECK(dropped.first == 8);
}

TEST_CASE("added tokens are whole wherever a text has them, the longest first, and other words are as before") {
  const Vocabulary vocabulary =
      Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n[\n]\n##1\ne\n[E1]\n[E1]]\nMore\none\n##a\n", "v");
  const Tokenizer tokenizer(vocabulary, {.added_tokens = {{.text = "[E1]", .id = 10, .special = true},
                                                          {.text = "[E1]]", .id = 11, .special = true},
                                                          {.text = "More", .id = 12, .normalized = true},
                                                          {.text = "one", .id = 13, .single_word = true}}});
  CHECK(tokenizer.encode("a[E1]a [E1]] [e1] [[E1") == Ids{5, 10, 5, 11, 6, 9, 8, 7, 6, 6, 9, 8});
  CHECK(tokenizer.encode("[SEP][E1][MASK]") == Ids{6, 1, 7, 10, 6, 1, 7});
  CHECK(tokenizer.encode("more MORE aMorea") == Ids{12, 12, 5, 12, 5});
  CHECK(tokenizer.encode("one aone, onea. .one! \u00E9one") == Ids{13, 1, 1, 13, 14, 1, 1, 13, 1, 1});
  CHECK(Tokenizer(vocabulary, {.lower_case = false, .added_tokens = {{.text = "More", .id = 12, .normalized = true}}})
            .encode("more More") == Ids{1, 12});
  DroppedBytes dropped;
  CHECK(tokenizer.encode("[E1]\xFF[E1]", &dropped) == Ids{10, 10});
  CHECK(dropped.first == 4);
}

TEST_CASE("the first letter of the alphabet has two cases in added tokens too, and the first digit is part of a word") {
  const Tokenizer tokenizer(
      Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\narea\none\n", "v"),
      {.added_tokens = {{.text = "area", .id = 5, .normalized = true}, {.text = "one", .id = 6, .single_word = true}}});
  CHECK(tokenizer.encode("xAREAx areaArea") == Ids{1, 5, 1, 5, 5});
  CHECK(tokenizer.encode("one 0one one0") == Ids{6, 1, 1});
}

TEST_CASE("of added tokens that begin alike the longest that may stand there is found, whatever its case counts") {
  const AddedTokenFinder finder({{.text = "ab", .id = 1},
                                 {.text = "AB", .id = 2, .normalized = true},
                                 {.text = "abc", .id = 3, .single_word = true},
                                 {.text = "aBcD", .id = 4, .normalized = true},
                                 {.text = "ab", .id = 5, .single_word = true},
                                 {.text = "x", .id = 6, .single_word = true},
                                 {.text = "x", .id = 7}},
                                true);
  const auto found = [&](std::string_view text) {
    const AddedTokenFinder::Found token = finder.next(text, 0);
    return std::pair(token.id, text.substr(token.begin, token.end - token.begin));
  };
  using Found = std::pair<std::int32_t, std::string_view>;
  CHECK(found("ab") == Found{1, "ab"});
  CHECK(found("aB") == Found{2, "aB"});
  CHECK(found("-abc-") == Found{3, "abc"});
  CHECK(found("abcx") == Found{1, "ab"});
  CHECK(found("ABCDE") == Found{4, "ABCD"});
  CHECK(found("x") == Found{6, "x"});
  CHECK(found("xx") == Found{7, "x"});
  CHECK(found("a") == Found{-1, ""});
}

TEST_CASE("many added tokens that begin alike are found in a time that does not grow with their number") {
  const double growth = support::growth_by_four(4000, [](int size) {
    std::vector<AddedToken> tokens;
    for (int i = 0; i < size; ++i) tokens.push_back({.text = "<" + std::to_string(i) + ">", .id = i});
    const AddedTokenFinder finder(std::move(tokens), true);
    CHECK(finder.next(std::string(static_cast<std::size_t>(size), '<') + "<7>", 0).id == 7);
  });
  CHECK(growth < 8);
}

TEST_CASE("a caching tokenizer gives the same ids with its cache warm, whatever bytes come") {
  const Tokenizer tokenizer(Vocabulary::parse(
      "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nab\n##a\n##b\n##ab\nabcdefgh\nabcdefghi\n##cdefghabcdefgh\n\u00DF\n",
      "v"));
  CachingTokenizer caching(tokenizer);
  std::mt19937 random(1);
  const std::string alphabet = "aaabbb ,.\xC3\x9F\xCE\xA3\xFF\n";
  const Strings words = {"abcdefgh", "abcdefghi", "abcdefghabcdefgh", "abcdefghabcdefgha", "\u00C4b", "\u4E2D"};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::size_t i = random() % 20; i-- > 0;) {
      if (random() % 4 == 0) text += words[random() % words.size()];
      text.push_back(alphabet[random() % alphabet.size()]);
    }
    const auto ids = caching.encode(text);
    REQUIRE(Ids(ids.begin(), ids.end()) == tokenizer.encode(text));
  }
}

TEST_CASE("a caching tokenizer that has seen more words than it can remember still gives each its ids") {
  const Tokenizer tokenizer(Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\n", "v"));
  std::string text;
  for (unsigned size = 2; size <= 14; ++size)
    for (unsigned word = 0; word < 1U << size; ++word) {
      for (unsigned i = 0; i < size; ++i) text += (word >> i & 1) != 0 ? 'b' : 'a';
      text += ' ';
    }
  const Ids expected = tokenizer.encode(text);
  CachingTokenizer caching(tokenizer);
  for (int round = 0; round < 3; ++round) CHECK(std::ranges::equal(caching.encode(text), expected));
}

TEST_CASE("a caching tokenizer tells what was no UTF-8 in its last text alone") {
  const Tokenizer tokenizer = toy();
  CachingTokenizer caching(tokenizer);
  caching.encode("un\xFF");
  CHECK(caching.dropped().count == 1);
  CHECK(caching.dropped().first == 2);
  caching.encode("un");
  CHECK(caching.dropped().count == 0);
}

TEST_CASE("a vocabulary of more beginnings of words than a tokenizer can number is refused") {
  const std::string lines = "[UNK]\n" + std::string((1 << 24) - 6, 'a');  // with the 5 of [UNK] and none: 2^24
  CHECK_THROWS_AS(Tokenizer(Vocabulary::parse(lines, "v", {.require_specials = false})), bertrand::Error);
}

TEST_CASE("every piece says where it stands in the text") {
  const auto vocabulary = [] {
    return Vocabulary::parse(
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nand\n/\nor\ncaf\n##e\nkm\n5\n,\nabc\n##d\n北\n京\n\u1112\n##\u1161\n"
        "##\u11AB\nU+\n",
        "toy");
  };
  const auto places = [](const Tokenizer& tokenizer, std::string_view text) {
    CachingTokenizer caching(tokenizer);
    Strings parts;
    const char* begin = text.data();  // parts ascend
    for (const std::string_view part : caching.places(text)) {
      CHECK(part.data() >= begin);
      begin = part.data();
      parts.emplace_back(part);
    }
    CHECK(parts.size() == caching.encode(text).size());
    return parts;
  };
  const Tokenizer tokenizer(vocabulary());
  CHECK(places(tokenizer, "AND/or/and") == Strings{"AND", "/", "or", "/", "and"});
  CHECK(places(tokenizer, "\u3000\u3000北京and,  ") == Strings{"北", "京", "and", ","});
  CHECK(places(tokenizer, "5\u00A0km,5\u2009\u0301km") == Strings{"5", "km", ",", "5", "km"});
  CHECK(places(tokenizer, "(cafe\u0301 Caf\u00C9)") == Strings{"(", "caf", "e\u0301", "Caf", "\u00C9", ")"});
  CHECK(places(tokenizer, "ab\u00ADcd\u00AD xyz\u0301z.") == Strings{"ab\u00ADc", "d", "xyz\u0301z", "."});
  CHECK(places(tokenizer, "\uD55C") == Strings{"\uD55C", "\uD55C", "\uD55C"});  // three characters
  CHECK(places(tokenizer, "\u0301\u0301and") == Strings{"and"});                // no word is before these accents
  CHECK(places(tokenizer, "").empty());
  const Tokenizer cased(vocabulary(), {.lower_case = false});
  CHECK(places(cased, "AND/or cafe\u0301") == Strings{"AND", "/", "or", "cafe\u0301"});
  const Tokenizer added(vocabulary(), {.added_tokens = {{.text = "U+", .id = 20}}});
  CHECK(places(added, "\u00C4 U+and") == Strings{"\u00C4", "U+", "and"});
  const Tokenizer keeping(vocabulary(), {.keep_special_tokens = true});
  CHECK(places(keeping, "and[PAD]or") == Strings{"and", "[PAD]", "or"});
}

TEST_CASE("every character of every word comes from somewhere") {
  for (const bool lower_case : {true, false}) {
    std::string text;
    for (char32_t c = 0; c < 0x110000; ++c) {
      if (0xD800 <= c && c < 0xE000) continue;
      char bytes[8];
      text.append("a").append(bytes, encode_utf8(c, bytes));
    }
    Words words;
    WordSplitter(lower_case).split(text, words);
    std::size_t characters = 0;
    for (const Words::Word& word : words.list()) characters += word.characters;
    CHECK(character_places(text, lower_case).size() == characters);
  }
}

TEST_CASE("a word of more than 4 GiB keeps its size") {
  Words words;
  words.add(std::size_t{5} << 30, std::size_t{5} << 30);
  CHECK(words.list().front().size == std::size_t{5} << 30);
  CHECK(words.list().front().characters == std::size_t{5} << 30);
}
