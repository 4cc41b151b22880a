#include "io/item_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/units.h"

namespace bertrand::io {
namespace {

constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(5);

}  // namespace

ItemProgress::ItemProgress(std::string what, std::int64_t total, std::FILE* out)
    : what_(std::move(what)), total_(total), line_(out), begin_(Clock::now()), last_(begin_) {}

void ItemProgress::begin(std::int64_t done) {
  before_ = done;
  begin_ = last_ = Clock::now();
}

void ItemProgress::update(std::int64_t done) {
  const Clock::time_point now = Clock::now();
  if (now - last_ < (line_.is_terminal() ? Clock::duration(kRedraw) : Clock::duration(kPlainLine))) return;
  last_ = now;
  const double seconds = std::max(std::chrono::duration<double>(now - begin_).count(), 1e-3);
  const double rate = static_cast<double>(done - before_) / seconds;
  const std::string text = total_ == 0
                               ? fmt::format("{}: {}, {}/s", what_, done, count_text(rate))
                               : fmt::format("{}: {} of {}, {}/s, {} left", what_, done, total_, count_text(rate),
                                             duration_text(static_cast<double>(total_ - done) / rate));
  if (line_.is_terminal()) line_.draw(text);
  else line_.print(text);
}

}  // namespace bertrand::io
