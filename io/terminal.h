// A line at the foot of a terminal that is drawn again and again, and lines that stay above it.
#pragma once
#include <chrono>
#include <cstdio>
#include <string>

namespace bertrand::io {

/// Text is taken to be ASCII: a byte is a column.
class TerminalLine {
 public:
  explicit TerminalLine(std::FILE* out);
  ~TerminalLine();  ///< what was drawn last stays
  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  /// Whether anything may be drawn. mpirun gives a process a terminal of its own, whatever its output goes to, so
  /// under mpirun nothing may.
  bool is_terminal() const { return is_terminal_; }
  /// Puts `text`, cut to the width of the terminal, in the place of what was drawn before.
  void draw(std::string text);
  /// A line that stays, on a terminal or elsewhere.
  void print(const std::string& text);

  /// Counts the time until show() is due from now on.
  void begin() { shown_at_ = Clock::now(); }
  /// Whether progress is to be shown again: every 100 ms on a terminal, elsewhere every 5 s.
  bool is_due() const;
  /// Draws the text, or prints it if nothing may be drawn.
  void show(const std::string& text);

 private:
  using Clock = std::chrono::steady_clock;

  void clear();

  std::FILE* out_;
  bool is_terminal_;
  std::size_t drawn_ = 0;  // columns of what stands there
  Clock::time_point shown_at_ = Clock::now();
};

}  // namespace bertrand::io
