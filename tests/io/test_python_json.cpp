#include "io/python_json.h"

#include <doctest/doctest.h>

#include <limits>

using namespace bertrand::io;

TEST_CASE("texts are escaped as json.dumps escapes them") {
  CHECK(python_json("a\x7f"
                    "b\u2028\u00e9\U0001f600/\"\\\n\r\t\b\f\x01") ==
        R"("a\u007fb\u2028\u00e9\ud83d\ude00/\"\\\n\r\t\b\f\u0001")");
  CHECK(python_json(" ~\uFFFF\U00010000") == R"(" ~\uffff\ud800\udc00")");
  CHECK(python_json("") == "\"\"");
}

TEST_CASE("numbers are written as repr writes them") {
  CHECK(python_json(1e16) == "1e+16");
  CHECK(python_json(1e15) == "1000000000000000.0");
  CHECK(python_json(1e-5) == "1e-05");
  CHECK(python_json(0.0001) == "0.0001");
  CHECK(python_json(123456789012345680.0) == "1.2345678901234568e+17");
  CHECK(python_json(-0.0) == "-0.0");
  CHECK(python_json(5e-324) == "5e-324");
  CHECK(python_json(0.1) == "0.1");
  CHECK(python_json(3.0) == "3.0");
  CHECK(python_json(static_cast<double>(0.1f)) == "0.10000000149011612");
  CHECK(python_json(-std::numeric_limits<double>::infinity()) == "-Infinity");
  CHECK(python_json(std::numeric_limits<double>::infinity()) == "Infinity");
  CHECK(python_json(std::numeric_limits<double>::quiet_NaN()) == "NaN");
}
