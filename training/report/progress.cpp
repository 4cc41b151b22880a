#include "training/report/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/units.h"

namespace bertrand::training {

std::string progress_bar(std::int64_t done, std::int64_t total) {
  constexpr std::int64_t kWidth = 10;
  const std::int64_t full = total > 0 ? std::clamp<std::int64_t>(kWidth * done / total, 0, kWidth) : 0;
  return fmt::format("[{}{}]", std::string(static_cast<std::size_t>(full), '#'),
                     std::string(static_cast<std::size_t>(kWidth - full), '.'));
}

std::string progress_text(const ProgressFigures& f) {
  const double share = f.total_steps > 0 ? 100.0 * static_cast<double>(f.step) / static_cast<double>(f.total_steps) : 0;
  std::string text =
      fmt::format("step {}/{}  {:.1f}%  loss {:.4f}  lr {:.2e}", f.step, f.total_steps, share, f.loss, f.learning_rate);
  // Rates and time left have no meaning before the first step is over.
  if (f.examples_per_second > 0)
    text += fmt::format("  {} examples/s  {} tokens/s", io::count_text(f.examples_per_second),
                        io::count_text(f.tokens_per_second));
  if (f.seconds_left >= 0) text += "  " + io::duration_text(f.seconds_left) + " left";
  if (f.memory_bytes > 0) text += "  " + io::bytes_text(static_cast<double>(f.memory_bytes));
  if (f.skipped_steps > 0) text += fmt::format("  {} skipped", f.skipped_steps);
  return text;
}

/// The time that the steps to come take if they go on as those since the first that was shown, pauses included.
ProgressFigures Progress::with_time_left(ProgressFigures figures) const {
  if (!begin_ || figures.step <= begin_step_) return figures;
  const double seconds = std::chrono::duration<double>(Clock::now() - *begin_).count();
  figures.seconds_left = seconds / static_cast<double>(figures.step - begin_step_) *
                         static_cast<double>(figures.total_steps - figures.step);
  return figures;
}

void Progress::update(const ProgressFigures& figures) {
  const auto now = Clock::now();
  if (!begin_) {
    begin_ = now;
    begin_step_ = figures.step;
  }
  if (!line_.is_terminal() || (now - last_ < std::chrono::milliseconds(100) && figures.step < figures.total_steps))
    return;
  last_ = now;
  line_.draw(progress_bar(figures.step, figures.total_steps) + " " + progress_text(with_time_left(figures)));
}

void Progress::log(const ProgressFigures& figures) {
  if (!line_.is_terminal()) message(progress_text(with_time_left(figures)));
}

void Progress::message(const std::string& text) { line_.print(text); }

}  // namespace bertrand::training
