#include "io/say.h"

#include <fmt/format.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "io/error.h"
#include "io/json.h"
#include "io/split.h"

namespace bertrand::io {
namespace {

std::atomic<LineFormat> chosen_format = LineFormat::text;

std::atomic<int> first_error = 0;

/// 0 or the system's number of why it failed.
int print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return 0;
  const int error = errno;
  int none = 0;
  first_error.compare_exchange_strong(none, error);
  return error;
}

}  // namespace

int stdout_error() { return first_error; }

void set_line_format(LineFormat format) { chosen_format = format; }
LineFormat line_format() { return chosen_format; }

std::string one_line(std::string text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };  // 0 after the last
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int c = byte(i), next = byte(i + 1);
    const bool is_c1 = c == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F
    if (c < ' ' || c == 0x7F || is_c1) text[i] = ' ';
    if (is_c1) text[++i] = ' ';
  }
  return text;
}

void write_stdout(std::string_view text) {
  if (const int error = print(text)) fail(Failure::io, "standard output: write: {}", std::strerror(error));
}

void say(std::string_view lines) {
  if (line_format() == LineFormat::text) {
    print(lines);
    return;
  }
  for (const std::string_view line : lines_of(lines))
    if (!line.empty()) say_event("message", fmt::format("{{\"text\":{}}}", json_text(std::string(line))));
}

void say_event(std::string_view event, std::string_view object) {
  if (line_format() == LineFormat::text) return;
  print(fmt::format("{{\"event\":\"{}\",{}\n", event, object.substr(1)));  // without its opening brace
}

}  // namespace bertrand::io
