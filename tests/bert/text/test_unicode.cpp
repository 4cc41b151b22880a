#include "bert/text/unicode.h"

#include <doctest/doctest.h>

#include "bert/text/utf8.h"

using namespace bertrand::text;

namespace {

/// FNV-1a over whole numbers, one byte of the textbook each.
class Fnv {
 public:
  void put(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001B3; }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xCBF29CE484222325;
};

}  // namespace

TEST_CASE("every code point has the properties, lower case, decomposition and sigma context of CPython 3.11") {
  const UnicodeTable& table = UnicodeTable::get();
  Fnv fnv;
  const auto put_lower = [&](std::u32string text) {
    table.lower(text);
    for (const char32_t c : text) fnv.put(c);
  };
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (0xD800 <= c && c <= 0xDFFF) continue;
    fnv.put(table.properties(c) & (kDropped | kSpace | kIdeograph | kPunctuation | kMark));
    put_lower({c});
    std::u32string decomposed;
    table.decompose_without_marks({c}, decomposed);
    for (const char32_t part : decomposed) fnv.put(part);
    put_lower({U'a', c, U'\u03A3'});
    put_lower({U'a', U'\u03A3', c, U'\u03A3'});
  }
  CHECK(fnv.hash() == 0xD85FCC6B4A2CCE72);  // computed by Python 3.11.7 with its unicodedata (14.0.0)
}

TEST_CASE("code points that Unicode 15.0 added are unassigned") {
  CHECK(UnicodeTable::is_assigned(0x0CF2));
  CHECK_FALSE(UnicodeTable::is_assigned(0x0CF3));
  CHECK_FALSE(UnicodeTable::is_assigned(0x1E08F));
  CHECK(UnicodeTable::get().properties(0x10EFD) == 0);  // a mark in 15.0
}

TEST_CASE("a capital sigma is final after a cased letter and before none, through what case ignores") {
  const UnicodeTable& table = UnicodeTable::get();
  const auto lower = [&](std::u32string text) {
    table.lower(text);
    return text;
  };
  CHECK(lower(U"ΟΔΟΣ") == U"οδος");
  CHECK(lower(U"ΟΔΟΣ.") == U"οδος.");
  CHECK(lower(U"ΟΔΟΣ.Α") == U"οδοσ.α");
  CHECK(lower(U"Σ") == U"σ");
  CHECK(lower(U".Σ") == U".σ");
  CHECK(lower(U"İΣ") == U"i\u0307ς");
}

TEST_CASE(
    "marks are sorted by their class before they are dropped, and other combining characters stay in that order") {
  std::u32string out;
  // U+1D165 (class 216) and U+302E (class 224) are no marks of category Mn.
  UnicodeTable::get().decompose_without_marks(U"a\u302E\U0001D165\u0301", out);
  CHECK(out == U"a\U0001D165\u302E");
  // Those of one class stay as they are, and none passes a letter.
  UnicodeTable::get().decompose_without_marks(U"a\u302E\u302Fb\u302E", out);
  CHECK(out == U"a\u302E\u302Fb\u302E");
}

TEST_CASE("invalid UTF-8 is dropped as Python's errors=\"ignore\" does") {
  const auto clean = [](std::string_view text) {
    std::string valid(text);
    drop_invalid_utf8(text, valid);
    return valid;
  };
  CHECK(clean("a\xFFz") == "az");
  CHECK(clean("a\xE2\x82") == "a");
  CHECK(clean("\xE2\x82"
              "A") == "A");
  CHECK(clean("\xE2(\xA1") == "(");
  CHECK(clean("\xED\xA0\x80x") == "x");      // a surrogate
  CHECK(clean("\xC0\x80x") == "x");          // overlong
  CHECK(clean("\xF4\x90\x80\x80x") == "x");  // above U+10FFFF
  CHECK(clean("\xF0\x9F\x98\x80") == "\xF0\x9F\x98\x80");
  std::string valid;
  const DroppedBytes dropped = drop_invalid_utf8("ab\x80\x80", valid);
  CHECK(dropped.count == 2);
  CHECK(dropped.first == 2);
}

TEST_CASE("the places where something was left out belong to what they are in or beside") {
  std::string valid;
  std::vector<std::size_t> gaps;
  drop_invalid_utf8(
      "\xFF\xFF"
      "ab\tc\xE9",
      valid, &gaps);
  CHECK(valid == "ab\tc");
  CHECK(gaps == std::vector<std::size_t>{0, 4});
  CHECK(has_gap(gaps, 0, 2));
  CHECK(has_gap(gaps, 3, 4));
  CHECK_FALSE(has_gap(gaps, 1, 3));
  CHECK_FALSE(has_gap({}, 0, 4));
}

TEST_CASE("what stands behind a text is no part of it, be it UTF-8 or not") {
  std::string valid;
  CHECK(drop_invalid_utf8(std::string_view("ab\xFF").substr(0, 2), valid).count == 0);
  CHECK(drop_invalid_utf8(std::string_view("\u20AC").substr(0, 2), valid).count == 2);
  CHECK(valid == "");
  CHECK(drop_invalid_utf8(std::string_view("a\u00E9").substr(0, 2), valid).count == 1);
  CHECK(valid == "a");
}

TEST_CASE("what was no UTF-8 is counted over the parts of a text, and the first of it keeps its line and column") {
  std::string valid;
  const InvalidBytes found = drop_invalid_lines("ok\nab\xFF\xFFgh\n\xFF", valid);
  CHECK(valid == "ok\nabgh\n");
  CHECK(found.count == 3);
  CHECK(found.first_line == 2);
  CHECK(found.first_column == 3);
  InvalidBytes all;
  all.add(InvalidBytes{}, 5);
  all.add(found, 10);
  all.add(DroppedBytes{.count = 1, .first = 0}, 4);
  CHECK(all.count == 4);
  CHECK(all.first_line == 12);
  CHECK(all.first_column == 3);
  InvalidBytes line;
  line.add(DroppedBytes{.count = 2, .first = 4}, 7);
  CHECK(line.first_line == 7);
  CHECK(line.first_column == 5);
  const InvalidBytes one = drop_invalid_lines("a\xFF\n", valid);
  CHECK(one.count == 1);
  InvalidBytes first;
  first.add(one, 4);
  CHECK(first.first_line == 5);
  CHECK(first.first_column == 2);
}
