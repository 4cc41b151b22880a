// Lines out of plain and compressed files.
#include <doctest/doctest.h>
#include <zlib.h>

#include <filesystem>
#include <vector>

#include "io/files.h"
#include "io/line_source.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;
namespace fs = std::filesystem;

namespace {

fs::path file_of(const std::string& bytes) {
  const fs::path file = fs::temp_directory_path() / "bertrand-lines.txt";
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

}  // namespace

TEST_CASE("lines end at LF or CRLF and the last one needs no end") {
  using Lines = std::vector<std::string>;
  CHECK(lines_of(file_of("")) == Lines{});
  CHECK(lines_of(file_of("a")) == Lines{"a"});
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

  const fs::path zipped = fs::temp_directory_path() / "bertrand-lines.txt.gz";
  const gzFile out = gzopen(zipped.c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  CHECK(lines_of(zipped) == lines);
  fs::resize_file(zipped, fs::file_size(zipped) / 2);
  CHECK(support::refusal(Failure::input, [&] { lines_of(zipped); }).find("gzip: expected a whole stream") !=
        std::string::npos);
}

TEST_CASE("a NUL in a line is refused with its line") {
  CHECK(support::refusal(Failure::input, [] {
          lines_of(file_of(std::string("a\nb\0c\n", 6)));
        }).find("lines.txt:2: expected text in UTF-8") != std::string::npos);
}
