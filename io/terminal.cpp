// Redrawing with carriage returns and blanks.
#include "io/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace bertrand::io {
namespace {

std::size_t width_of(std::FILE* out) {
  winsize size{};
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

TerminalLine::TerminalLine(std::FILE* out)
    : out_(out), is_terminal_(!std::getenv("OMPI_COMM_WORLD_SIZE") && ::isatty(::fileno(out)) == 1) {}

TerminalLine::~TerminalLine() {
  if (drawn_ > 0) std::fputs("\n", out_);
  std::fflush(out_);
}

/// Blanks instead of an escape sequence: every terminal knows them. A terminal that has become narrower gets no more of
/// them than fit: others would go on in the next line.
void TerminalLine::clear() {
  if (drawn_ > 0) std::fputs(fmt::format("\r{:{}}\r", "", std::min(drawn_, width_of(out_) - 1)).c_str(), out_);
  drawn_ = 0;
}

void TerminalLine::draw(std::string text) {
  if (const std::size_t width = width_of(out_); text.size() >= width) text.resize(width - 1);
  clear();
  std::fputs(text.c_str(), out_);
  std::fflush(out_);
  drawn_ = text.size();
}

void TerminalLine::print(const std::string& text) {
  clear();
  std::fputs((text + "\n").c_str(), out_);
  std::fflush(out_);
}

bool TerminalLine::is_due() const {
  constexpr std::chrono::milliseconds kRedraw(100), kPlainLine(5000);
  return Clock::now() - shown_at_ >= (is_terminal_ ? kRedraw : kPlainLine);
}

void TerminalLine::show(const std::string& text) {
  shown_at_ = Clock::now();
  if (is_terminal_) draw(text);
  else print(text);
}

}  // namespace bertrand::io
