// A terminal, a file and a standard error to write to, and what was written.
#pragma once
#include <doctest/doctest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace support {

/// What `body` writes to a terminal of so many columns.
template <class Body>
std::string on_terminal(unsigned short columns, const Body& body) {
  int master = -1, slave = -1;
  winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, &size) == 0);
  std::FILE* out = ::fdopen(slave, "w");
  body(out);
  std::fclose(out);
  // What was written stays readable until the end, though not always in one piece.
  std::string text;
  char part[4096];
  for (ssize_t bytes = 0; (bytes = ::read(master, part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(bytes));
  ::close(master);
  return text;
}

/// The same to a file.
template <class Body>
std::string in_file(const Body& body) {
  std::FILE* out = std::tmpfile();
  body(out);
  std::string text(65536, '\0');
  std::rewind(out);
  text.resize(std::fread(text.data(), 1, text.size(), out));
  std::fclose(out);
  return text;
}

/// What `body` makes this process write to standard error.
template <class Body>
std::string on_standard_error(const Body& body) {
  return in_file([&](std::FILE* out) {
    struct Restored {
      const int before = ::dup(STDERR_FILENO);
      ~Restored() {
        ::dup2(before, STDERR_FILENO);
        ::close(before);
      }
    } const restored;
    ::dup2(::fileno(out), STDERR_FILENO);
    body();
  });
}

}  // namespace support
