#include "io/say.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdio>

#include "support/terminal.h"

using namespace bertrand::io;

TEST_CASE("a warning is one line that steers no terminal, whatever it tells of") {
  CHECK(warning("{}: {} rows", "file", 3) == "warning: file: 3 rows\n");
  CHECK(warning("{}", "a\nb\r\x1b[31mc\x7f\xC2\x9B") == "warning: a b  [31mc   \n");
  CHECK(warning("{}", "\xC2\x80\xC2\xA0") == "warning:   \xC2\xA0\n");  // a blank that breaks no line steers nothing
  CHECK(warning("{}", "\xC3\xA9\xE6\x9C\xAC") == "warning: \xC3\xA9\xE6\x9C\xAC\n");
}

TEST_CASE("in lines of JSON each line that is said is an event, and in text it is as it was and events are not shown") {
  const auto said = [] {
    return support::in_file([](std::FILE* out) {
      std::fflush(stdout);
      const int before = ::dup(STDOUT_FILENO);
      ::dup2(::fileno(out), STDOUT_FILENO);
      say("a\n\nb \"c\"\nd");
      say_event("step", R"({"loss":1})");
      ::dup2(before, STDOUT_FILENO);
      ::close(before);
    });
  };
  CHECK(said() == "a\n\nb \"c\"\nd");
  set_line_format(LineFormat::jsonl);
  const std::string lines = said();
  set_line_format(LineFormat::text);
  CHECK(lines ==
        R"({"event":"message","text":"a"}
{"event":"message","text":"b \"c\""}
{"event":"message","text":"d"}
{"event":"step","loss":1}
)");
}
