#include "io/say.h"

#include <doctest/doctest.h>

using namespace bertrand::io;

TEST_CASE("a warning is one line that steers no terminal, whatever it tells of") {
  CHECK(warning("{}: {} rows", "file", 3) == "warning: file: 3 rows\n");
  CHECK(warning("{}", "a\nb\r\x1b[31mc\x7f\xC2\x9B") == "warning: a b  [31mc   \n");
  CHECK(warning("{}", "\xC2\x80\xC2\xA0") == "warning:   \xC2\xA0\n");  // a blank that breaks no line steers nothing
  CHECK(warning("{}", "\xC3\xA9\xE6\x9C\xAC") == "warning: \xC3\xA9\xE6\x9C\xAC\n");
}
