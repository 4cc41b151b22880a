// Long texts cut.
#include "io/shortened.h"

#include <doctest/doctest.h>

using bertrand::io::shortened;

TEST_CASE("a text is cut between characters") {
  CHECK(shortened("aé", 3) == "aé");
  CHECK(shortened("aé", 2) == "a…");
  CHECK(shortened("abc", 2) == "ab…");
  CHECK(shortened("שלום", 3) == "ש…");
}
