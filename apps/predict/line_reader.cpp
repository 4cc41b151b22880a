// A buffer that is read into as far as the input has something.
#include "apps/predict/line_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/error.h"
#include "io/input_files.h"
#include "io/signals.h"

namespace bertrand::predict {
namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 16;

}  // namespace

LineReader::LineReader(const std::filesystem::path& file)
    : name_(file.empty() ? "standard input" : file.string()), descriptor_(STDIN_FILENO) {
  if (file.empty()) return;
  io::refuse_directory(file, "text", Failure::input);
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored)) {
    source_ = std::make_unique<io::ByteSource>(file, "text");
    return;
  }
  descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0)
    fail(errno == ENOENT ? Failure::input : Failure::io, "{}: open: {}", name_, std::strerror(errno));
}

LineReader::~LineReader() {
  if (!source_ && descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

bool LineReader::next(std::string& line) {
  while (!has_line() && !ended_) {
    // A signal before poll() would not end it, so it looks up now and then.
    while (!io::leave_requested() && !wait(200)) continue;
    if (io::leave_requested()) return false;
    read_more();
  }
  if (begin_ == buffer_.size()) return false;
  const std::size_t end = std::min(searched_, buffer_.size());
  line.assign(buffer_, begin_, end - begin_);
  if (line.ends_with('\r')) line.pop_back();
  begin_ = searched_ = std::min(end + 1, buffer_.size());
  ++number_;
  return true;
}

bool LineReader::is_ready() {
  while (!has_line() && !ended_) {
    if (!wait(0)) return false;
    read_more();
  }
  return true;
}

/// Moves searched_ to the end of the next line, or of what was read.
bool LineReader::has_line() {
  searched_ = std::min(buffer_.find('\n', searched_), buffer_.size());
  if (searched_ - begin_ > kLongest)
    fail(Failure::input, "{}:{}: expected a line of at most {} bytes, got more", name_, number_ + 1, kLongest);
  return searched_ < buffer_.size();
}

bool LineReader::wait(int milliseconds) {
  if (source_) return true;
  pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, milliseconds) > 0;
}

void LineReader::read_more() {
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  const std::size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  ssize_t count = 0;
  if (source_) count = static_cast<ssize_t>(source_->read(buffer_.data() + before, kReadBytes));
  else count = ::read(descriptor_, buffer_.data() + before, kReadBytes);
  const int error = errno;
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  if (count < 0 && error != EINTR) fail(Failure::io, "{}: read: {}", name_, std::strerror(error));
  ended_ = count == 0;
  if (source_ && !source_->damage().empty())
    fail(Failure::input, "{}: gzip: expected a whole stream, got {}", name_, source_->damage());
}

}  // namespace bertrand::predict
