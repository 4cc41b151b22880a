#include "bert/tasks/labels.h"

#include <doctest/doctest.h>

using namespace bertrand::tasks;

TEST_CASE("blanks and tabs at both ends are no part of a cell or of a label among several") {
  CHECK(trimmed_cell(" \tx y\t ") == "x y");
  CHECK(trimmed_cell(" \t").empty());
  using Names = std::vector<std::string>;
  CHECK(split_labels(" a , b,, ,c ", ",") == Names{"a", "b", "c"});
  CHECK(split_labels("a, b", ", ") == Names{"a", "b"});
  CHECK(split_labels("a,", ",") == Names{"a"});
  CHECK(split_labels("", ",").empty());
}
