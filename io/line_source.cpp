#include "io/line_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.h"
#include "io/input_files.h"

namespace bertrand::io {

bool LineSource::has_line() {
  searched_ = std::min(buffer_.find('\n', searched_), buffer_.size());
  if (searched_ - begin_ > kLongest)
    fail(Failure::input, "{}:{}: expected a line of at most {} bytes, got more", name_, number_ + 1, kLongest);
  return searched_ < buffer_.size();
}

/// Reads more after what is in the buffer.
void LineSource::fill() {
  constexpr std::size_t kPart = std::size_t{1} << 18;
  buffer_.erase(0, begin_);
  searched_ -= std::exchange(begin_, 0);
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kPart);
  const std::size_t got = source_.read_some(buffer_.data() + kept, kPart);
  buffer_.resize(kept + got);
  ended_ = got == 0 || !source_.damage().empty();
}

bool LineSource::is_ready() {
  while (!has_line() && !ended_) {
    if (!source_.is_ready()) return false;
    fill();
  }
  return true;
}

bool LineSource::next_raw(std::string_view& line) {
  while (!has_line() && !ended_) {
    if (!source_.wait())
      fail(Failure::interrupted, "{}: interrupted while it waited for line {}; all lines before it were read", name_,
           number_ + 1);
    fill();
  }
  // Whole lines before the damage are good.
  if (!has_line() && !source_.damage().empty())
    fail(Failure::input, "{}: expected whole compressed data, got {} after line {}", name_, source_.damage(), number_);
  if (begin_ == buffer_.size()) return false;
  line = std::string_view(buffer_).substr(begin_, searched_ - begin_);
  begin_ = searched_ = std::min(searched_ + 1, buffer_.size());
  ++number_;
  if (number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

bool LineSource::skip_long_line() {
  if (searched_ - begin_ <= kLongest) return false;
  while (searched_ == buffer_.size() && !ended_) {
    begin_ = searched_;
    fill();
    searched_ = std::min(buffer_.find('\n'), buffer_.size());
  }
  begin_ = searched_ = std::min(searched_ + 1, buffer_.size());
  ++number_;
  return true;
}

bool LineSource::next(std::string_view& line) {
  if (!next_raw(line)) return false;
  refuse_nul(line, name_, static_cast<std::uint64_t>(number_) - 1);
  return true;
}

std::string LineSource::where() const { return fmt::format("{}:{}", name_, number_); }

}  // namespace bertrand::io
