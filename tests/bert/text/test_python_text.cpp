#include "bert/text/python_text.h"

#include <doctest/doctest.h>

using namespace bertrand::text;

TEST_CASE("word characters and white space are those of CPython 3.11") {
  // sum(c for c in range(0x110000) if re.match(r'\w', chr(c))), and the same of str.isspace; surrogates are neither
  std::uint64_t words = 0, word_sum = 0, spaces = 0, space_sum = 0;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (0xD800 <= c && c < 0xE000) continue;
    if (is_python_word(c)) ++words, word_sum += c;
    if (is_python_space(c)) ++spaces, space_sum += c;
  }
  CHECK(words == 133548);
  CHECK(word_sum == 14002814312);
  CHECK(spaces == 29);
  CHECK(space_sum == 141704);
}

TEST_CASE("split cuts at every run of white space") {
  const std::vector<std::u32string> expected = {U"a", U"b", U"c"};
  CHECK((python_split(U" a\u00a0\u3000b\x1c"
                      U"c\n") == expected));
  CHECK(python_split(U" \t").empty());
}

TEST_CASE("code points survive the way to UTF-8 and back") {
  const std::string text = "a\u00e9\u20ac\U0001f600";
  CHECK(to_code_points(text).size() == 4);
  CHECK(to_utf8(to_code_points(text)) == text);
}
