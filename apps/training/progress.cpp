#include "apps/training/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

#include "tensor/error.h"

namespace bertrand::training {
namespace {

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  const auto s = static_cast<long long>(seconds + 0.5);
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

std::string count_text(double count) {
  if (count < 1000) return fmt::format("{:.3g}", count);
  for (const char* unit : {"k", "M", "G"}) {
    count /= 1000;
    if (count < 999.5 || *unit == 'G') return fmt::format("{:.3g}{}", count, unit);
  }
  return {};
}

std::string bytes_text(double bytes) {
  if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
  for (const char* unit : {"kB", "MB", "GB", "TB"}) {
    bytes /= 1000;
    if (bytes < 999.5 || *unit == 'T') return fmt::format("{:.3g} {}", bytes, unit);
  }
  return {};
}

std::string progress_text(const ProgressFigures& f) {
  std::string text = fmt::format("step {}/{}  {:.1f}%  loss {:.4f}  lr {:.2e}", f.step, f.total_steps,
                                 f.total_steps > 0 ? 100.0 * static_cast<double>(f.step) / static_cast<double>(f.total_steps) : 0.0, f.loss, f.learning_rate);
  // Rates and time left have no meaning before the first step is over.
  if (f.examples_per_second > 0) text += fmt::format("  {} examples/s  {} tokens/s", count_text(f.examples_per_second), count_text(f.tokens_per_second));
  if (f.seconds_left >= 0) text += "  " + duration_text(f.seconds_left) + " left";
  if (f.memory_bytes > 0) text += "  " + bytes_text(static_cast<double>(f.memory_bytes));
  return text;
}

Progress::Progress() : terminal_(::isatty(STDOUT_FILENO) == 1) {}
Progress::~Progress() {
  if (drawn_) std::fputs("\n", stdout);
  std::fflush(stdout);
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\033[K", stdout);
  drawn_ = false;
}

void Progress::update(const ProgressFigures& figures) {
  const auto now = std::chrono::steady_clock::now();
  if (!terminal_ || (now - last_ < std::chrono::milliseconds(100) && figures.step < figures.total_steps)) return;
  last_ = now;
  std::string text = progress_text(figures);  // ASCII, so bytes are columns
  if (const std::size_t width = terminal_width(); text.size() >= width) text.resize(width - 1);
  clear();
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  drawn_ = true;
}

void Progress::log(const ProgressFigures& figures) {
  if (!terminal_) message(progress_text(figures));
}

void Progress::message(const std::string& text) {
  clear();
  std::fputs((text + "\n").c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace bertrand::training
