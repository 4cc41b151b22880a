#include "io/markdown.h"

#include <doctest/doctest.h>

using bertrand::io::markdown_cell;

TEST_CASE("a cell of Markdown has no markup, no line break and no end of the cell in it") {
  CHECK(markdown_cell("a|b <i>*c*\n_d_ [e](f) `g` \\ &lt; ~h~") ==
        "a&#124;b &#60;i>&#42;c&#42; &#95;d&#95; &#91;e&#93;(f) &#96;g&#96; &#92; &#38;lt; &#126;h&#126;");
}

TEST_CASE("a long cell of Markdown is cut before a character and says so") {
  CHECK(markdown_cell("abcd", 4) == "abcd");
  CHECK(markdown_cell("abcde", 4) == "abcd…");
  CHECK(markdown_cell("abçde", 3) == "ab…");
  CHECK(markdown_cell("abçde", 4) == "abç…");
  CHECK(markdown_cell("\x80\x80\x80", 2) == "…");  // no character at all
}
