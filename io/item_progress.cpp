#include "io/item_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/units.h"

namespace bertrand::io {

ItemProgress::ItemProgress(std::string what, std::int64_t total, std::FILE* out)
    : what_(std::move(what)), total_(total), line_(out), begin_(Clock::now()) {}

void ItemProgress::begin(std::int64_t done) {
  before_ = done;
  begin_ = Clock::now();
  line_.begin();
}

void ItemProgress::update(std::int64_t done) {
  if (!line_.is_due()) return;
  const double seconds = std::max(std::chrono::duration<double>(Clock::now() - begin_).count(), 1e-3);
  const double rate = static_cast<double>(done - before_) / seconds;
  line_.show(total_ == 0 ? fmt::format("{}: {}, {}/s", what_, done, count_text(rate))
                         : fmt::format("{}: {} of {}, {}/s, {} left", what_, done, total_, count_text(rate),
                                       duration_text(static_cast<double>(total_ - done) / rate)));
}

}  // namespace bertrand::io
