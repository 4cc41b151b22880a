// Lines out of plain and compressed files.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <vector>

#include "io/files.h"
#include "io/line_source.h"
#include "io/signals.h"
#include "support/gzip.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;
namespace fs = std::filesystem;

namespace {

/// A file of this process alone: other tests run at the same time in processes of their own.
fs::path named(const std::string& name) {
  static const support::TemporaryDirectory directory;
  return directory / name;
}

fs::path file_of(const std::string& bytes) {
  const fs::path file = named("bertrand-lines.txt");
  replace_file(Files::system(), file, bytes);
  return file;
}

std::vector<std::string> lines_of(const fs::path& file) {
  LineSource source(file, "lines");
  std::vector<std::string> lines;
  for (std::string_view line; source.next(line);) lines.emplace_back(line);
  CHECK(source.number() == std::ssize(lines));
  return lines;
}

/// Whether a process that is asked to leave does not wait: `read` throws Error(Failure::interrupted) of that text.
template <class Read>
bool is_left(const std::string& text, const Read& read) {
  const pid_t child = ::fork();
  if (child == 0) {
    catch_stop_signals(OnStop::leave);
    try {
      read();
    } catch (const Error& error) {
      const bool has_text = std::string(error.what()).find(text) != std::string::npos;
      ::_exit(has_text && error.failure() == Failure::interrupted ? 75 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 75;
}

}  // namespace

TEST_CASE("lines end at LF or CRLF and the last one needs no end") {
  using Lines = std::vector<std::string>;
  CHECK(lines_of(file_of("")) == Lines{});
  CHECK(lines_of(file_of("a")) == Lines{"a"});
  CHECK(lines_of(file_of("\na")) == Lines{"", "a"});
  CHECK(lines_of(file_of("a\n\nb\r\n\r\nc\rd")) == Lines{"a", "", "b", "", "c\rd"});
}

TEST_CASE("lines are found across the borders of what is read at once") {
  std::vector<std::string> lines;
  std::string text;
  for (std::size_t i = 0; i < 3000; ++i) {
    lines.push_back(std::string(i % 700, static_cast<char>('a' + i % 26)));
    text += lines.back() + "\n";
  }
  lines.push_back(std::string(std::size_t{1} << 20, 'x'));
  text += lines.back();
  CHECK(lines_of(file_of(text)) == lines);

  const fs::path zipped = named("bertrand-lines.txt.gz");
  support::write_text(zipped, support::gzipped(text));
  CHECK(lines_of(zipped) == lines);
  fs::resize_file(zipped, fs::file_size(zipped) / 2);
  LineSource cut(zipped, "lines");
  std::size_t good = 0;  // all whole lines before the damage
  const std::string message = support::refusal(Failure::input, [&] {
    for (std::string_view line; cut.next(line); ++good) CHECK(line == lines[good]);
  });
  CHECK(good > 100);
  CHECK(message.find("expected whole compressed data") != std::string::npos);
  CHECK(message.ends_with("after line " + std::to_string(good)));
}

TEST_CASE("a pipe is read as it is filled and no byte of it is lost") {
  const fs::path pipe = named("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int both = ::open(pipe.c_str(), O_RDWR);  // so that opening one end does not wait for the other
  const auto write = [&](std::string_view text) { CHECK(::write(both, text.data(), text.size()) == std::ssize(text)); };
  write("first\nsec");
  LineSource source(pipe, "lines");
  std::string_view line;
  CHECK(source.is_ready());
  CHECK(source.next(line));
  CHECK(line == "first");
  CHECK_FALSE(source.is_ready());
  write("ond\n");
  CHECK(source.is_ready());
  CHECK(source.next(line));
  CHECK(line == "second");
  ::close(both);
  CHECK(source.is_ready());
  CHECK_FALSE(source.next(line));
}

TEST_CASE("a wait for a line ends when the process is asked to leave, and the line that did not come is named") {
  const fs::path pipe = named("unfinished");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(is_left(" line 2;", [&] {
    const int both = ::open(pipe.c_str(), O_RDWR);
    (void)!::write(both, "a\nb", 3);
    LineSource source(pipe, "lines");
    std::string_view line;
    if (!source.next(line) || line != "a") return;
    std::raise(SIGTERM);
    source.next(line);
  }));
}

TEST_CASE("a process that is asked to leave does not wait for a pipe that nobody writes") {
  const fs::path pipe = named("unwritten");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(is_left(pipe.string() + ": interrupted while it waited", [&] {
    std::raise(SIGTERM);
    char byte = 0;
    ByteSource(pipe, "bytes").read(&byte, 1);
  }));
}

TEST_CASE("a line that no memory should hold is refused") {
  CHECK(lines_of(file_of(std::string(LineSource::kLongest, 'x') + "\na")).size() == 2);
  const fs::path file = file_of("a\n" + std::string(LineSource::kLongest + 1, 'x'));
  CHECK(support::refusal(Failure::input, [&] {
          lines_of(file);
        }).ends_with("bertrand-lines.txt:2: expected a line of at most 67108864 bytes, got more"));
}

TEST_CASE("a byte order mark before the first line is no part of it") {
  using Lines = std::vector<std::string>;
  CHECK(lines_of(file_of("\xEF\xBB\xBF"
                         "1\ta\r\n1\tb")) == Lines{"1\ta", "1\tb"});
  CHECK(lines_of(file_of("\xEF\xBB\xBF")) == Lines{""});
  CHECK(lines_of(file_of("\xEF\xBBx\n\xEF\xBB\xBFy")) == Lines{"\xEF\xBBx", "\xEF\xBB\xBFy"});
}

TEST_CASE("a line that was refused for its length can be passed over, and no other") {
  for (const std::size_t longer : {std::size_t{1}, std::size_t{1'000'000}}) {
    const std::string text = "a\n" + std::string(LineSource::kLongest + longer, 'x');
    for (const char* end : {"", "\n", "\nb\n\nc"}) {
      LineSource source(file_of(text + end), "lines");
      std::string_view line;
      CHECK(source.next(line));
      CHECK_FALSE(source.skip_long_line());
      CHECK_THROWS(source.next(line));
      CHECK(source.skip_long_line());
      CHECK(source.number() == 2);
      std::vector<std::string> rest;
      while (source.next(line)) rest.emplace_back(line);
      CHECK(rest ==
            (std::string_view(end).size() > 1 ? std::vector<std::string>{"b", "", "c"} : std::vector<std::string>{}));
    }
  }
}

TEST_CASE("a NUL in a line is refused with its line") {
  CHECK(support::refusal(Failure::input, [] {
          lines_of(file_of(std::string("a\nb\0c\n", 6)));
        }).find("lines.txt:2: expected text in UTF-8") != std::string::npos);
}
