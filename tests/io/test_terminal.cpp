#include "io/terminal.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>

#include "support/terminal.h"

namespace {

/// The longest row of blanks in what was written.
std::size_t longest_blank(const std::string& text) {
  std::size_t longest = 0, length = 0;
  for (const char c : text) longest = std::max(longest, length = c == ' ' ? length + 1 : 0);
  return longest;
}

}  // namespace

TEST_CASE("a terminal that becomes narrower while a line is drawn gets no more than fits") {
  const std::string text = support::on_terminal(60, [](std::FILE* out) {
    bertrand::io::TerminalLine line(out);
    line.draw(std::string(50, 'a'));
    const winsize narrow{.ws_row = 24, .ws_col = 20, .ws_xpixel = 0, .ws_ypixel = 0};
    REQUIRE(::ioctl(::fileno(out), TIOCSWINSZ, &narrow) == 0);
    line.draw(std::string(50, 'b'));
    line.draw("c");
  });
  CHECK(text.find(std::string(50, 'a')) != std::string::npos);
  CHECK(text.find(std::string(19, 'b')) != std::string::npos);
  CHECK(text.find(std::string(20, 'b')) == std::string::npos);
  CHECK(longest_blank(text) == 19);
}

TEST_CASE("a line that stays takes the place of a drawn one, of one character too") {
  const std::string text = support::on_terminal(80, [](std::FILE* out) {
    bertrand::io::TerminalLine line(out);
    line.draw("a");
    line.print("done");
  });
  CHECK(text == "a\r \rdone\r\n");
}

TEST_CASE("a line leaves the last column free, also of a terminal that does not say how many it has") {
  const auto drawn = [](unsigned short columns, std::size_t size) {
    const std::string text = support::on_terminal(
        columns, [&](std::FILE* out) { bertrand::io::TerminalLine(out).draw(std::string(size, 'a')); });
    return std::ranges::count(text, 'a');
  };
  CHECK(drawn(20, 19) == 19);
  CHECK(drawn(20, 20) == 19);
  CHECK(drawn(0, 100) == 79);
}

TEST_CASE("lines are redrawn on a terminal alone, and on none that several processes of a launcher share") {
  const auto is_terminal = [](std::FILE* out) { return bertrand::io::TerminalLine(out).is_terminal(); };
  bool on_terminal = false, in_file = true, shared = true;
  support::on_terminal(80, [&](std::FILE* out) { on_terminal = is_terminal(out); });
  support::in_file([&](std::FILE* out) { in_file = is_terminal(out); });
  ::setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  support::on_terminal(80, [&](std::FILE* out) { shared = is_terminal(out); });
  ::unsetenv("OMPI_COMM_WORLD_SIZE");
  CHECK(on_terminal);
  CHECK_FALSE(in_file);
  CHECK_FALSE(shared);
}
