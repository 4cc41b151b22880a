#include "io/line_source.h"

#include <fmt/format.h>

#include "io/error.h"
#include "io/input_files.h"

namespace bertrand::io {

/// Reads on behind what is in the buffer. False at the end of the file.
bool LineSource::fill() {
  if (ended_) return false;
  constexpr std::size_t kPart = std::size_t{1} << 18;
  buffer_.erase(0, std::exchange(begin_, 0));
  const std::size_t kept = buffer_.size();
  buffer_.resize(kept + kPart);
  const std::size_t got = source_.read(buffer_.data() + kept, kPart);
  buffer_.resize(kept + got);
  ended_ = got < kPart;
  if (!source_.damage().empty())
    fail(Failure::input, "{}: gzip: expected a whole stream, got {} after line {}", name_, source_.damage(), number_);
  return got > 0;
}

bool LineSource::next(std::string_view& line) {
  std::size_t end = buffer_.find('\n', begin_);
  while (end == std::string::npos) {
    const std::size_t searched = buffer_.size() - begin_;
    if (!fill()) break;
    end = buffer_.find('\n', searched);
  }
  if (end == std::string::npos && begin_ == buffer_.size()) return false;
  line = std::string_view(buffer_).substr(begin_, end == std::string::npos ? end : end - begin_);
  begin_ = end == std::string::npos ? buffer_.size() : end + 1;
  refuse_nul(line, name_, static_cast<std::uint64_t>(number_));
  ++number_;
  if (line.ends_with('\r')) line.remove_suffix(1);
  return true;
}

std::string LineSource::where() const { return fmt::format("{}:{}", name_, number_); }

}  // namespace bertrand::io
