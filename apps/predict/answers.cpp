// Answers written.
#include "apps/predict/answers.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "io/error.h"
#include "io/say.h"
#include "io/signals.h"

namespace bertrand::predict {
namespace {

/// Until standard output takes PIPE_BUF bytes at once, or has failed. A write to a pipe that nobody reads would wait
/// for ever, whatever signal comes.
void wait_for_reader() {
  constexpr int kMilliseconds = 200;  // a signal that comes before the wait does not end it
  pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  while (::poll(&out, 1, kMilliseconds) <= 0)
    if (io::leave_requested())
      fail(Failure::interrupted, "standard output: interrupted while nobody read it; the last answer may lack its end");
}

}  // namespace

Answers::Answers(const std::filesystem::path& file) {
  if (!file.empty()) file_ = std::make_unique<io::FileReplacer>(io::Files::system(), file);
}

void Answers::write(std::string_view lines) {
  has_some_ = has_some_ || !lines.empty();
  if (file_) return file_->write(lines);
  for (; !lines.empty(); lines.remove_prefix(std::min<std::size_t>(lines.size(), PIPE_BUF))) {
    wait_for_reader();
    io::write_stdout(lines.substr(0, PIPE_BUF));
  }
}

void Answers::publish_some() {
  if (has_some_) publish();
}

void Answers::publish() {
  if (file_) file_->publish();
}

}  // namespace bertrand::predict
