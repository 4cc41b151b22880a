// Rates and times of one stage.
#include "io/byte_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/error.h"
#include "io/signals.h"
#include "io/units.h"

namespace bertrand::io {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

ByteProgress::ByteProgress(std::string stage, double total, std::FILE* out, bool quiet)
    : stage_(std::move(stage)), total_(total), line_(out), quiet_(quiet), begin_(Clock::now()) {}

void ByteProgress::update(double done) {
  leave_if_requested(stage_);
  if (quiet_ || !line_.is_due()) return;
  shown_ = true;
  line_.show(text(done, false));
}

void ByteProgress::finish() { line_.print(text(total_, true)); }

std::string ByteProgress::text(double done, bool is_finished) const {
  const double seconds = std::max(std::chrono::duration<double>(Clock::now() - begin_).count(), 1e-3);
  const std::string rate = fmt::format("{:.1f} MB/s", done / seconds / 1e6);
  if (is_finished) {
    return fmt::format("{}: {} in {:.1f} s, {}", stage_, bytes_text(done), seconds, rate);
  }
  if (total_ <= 0 || done <= 0) return fmt::format("{}: {}, {}", stage_, bytes_text(done), rate);
  return fmt::format("{}: {:.0f} % of {}, {}, {} left", stage_, 100 * done / total_, bytes_text(total_), rate,
                     duration_text(seconds * (total_ - done) / done));
}

}  // namespace bertrand::io
