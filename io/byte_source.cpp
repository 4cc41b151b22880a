// Plain and compressed files behind one read().
#include "io/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/error.h"
#include "io/file_names.h"
#include "io/gzip.h"
#include "io/input_files.h"
#include "io/signals.h"
#include "io/units.h"
#include "io/zstd.h"

namespace bertrand::io {

void check_decompressed(const std::filesystem::path& file, std::uint64_t bytes, std::uint64_t most) {
  if (bytes > most)
    fail(Failure::input, "{}: expected at most {} after decompression, got more; hint: unpack it first", file.string(),
         bytes_text(static_cast<double>(most)));
}

ByteSource::ByteSource(const std::filesystem::path& file, std::string_view what,
                       const std::function<bool(std::string_view)>& is_plain)
    : file_(file.empty() ? "standard input" : file.string()) {
  refuse_directory(file, what, Failure::input);
  descriptor_ = file.empty() ? Descriptor(::dup(STDIN_FILENO)) : open_to_read(file);
  if (!descriptor_) refuse_open(file_, errno);
  const off_t start = ::lseek(descriptor_.number(), 0, SEEK_CUR);
  if (start < 0) return;  // of a pipe or a terminal: what is read cannot be read again
  std::string beginning(kBeginning, '\0');
  beginning.resize(read(beginning.data(), beginning.size()));
  ::lseek(descriptor_.number(), start, SEEK_SET);
  if (is_plain && is_plain(beginning)) return;
  if (is_gzip(beginning)) decompressor_ = std::make_unique<GzipStream>(file_);
  else if (is_zstd(beginning)) decompressor_ = std::make_unique<ZstdStream>(file_);
  else if (is_compressed_name(file))
    fail(Failure::input, "{}: expected data of gzip or Zstandard, as its name says, got {}; hint: is it {}?", file_,
         beginning.empty() ? "an empty file" : "another beginning",
         beginning.size() < kBeginning ? "cut short" : "unpacked already, so that it needs another name");
}

std::size_t ByteSource::read(char* out, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const std::size_t count = read_some(out + done, size - done);
    if (count == 0) break;
    done += count;
  }
  return done;
}

std::size_t ByteSource::read_some(char* out, std::size_t size) {
  return is_compressed() ? read_compressed(out, size) : read_plain(out, size);
}

bool ByteSource::is_ready(int milliseconds) const {
  pollfd input{.fd = descriptor_.number(), .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, milliseconds) > 0;  // a file that is no pipe or terminal always is
}

bool ByteSource::wait() const {
  constexpr int kMilliseconds = 200;  // a signal that comes before poll() does not end it
  while (!is_ready(kMilliseconds))
    if (leave_requested()) return false;
  return true;
}

std::size_t ByteSource::read_plain(char* out, std::size_t size) {
  while (true) {
    if (!wait()) fail(Failure::interrupted, "{}: interrupted while it waited for more to read", file_);
    const ssize_t count = ::read(descriptor_.number(), out, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR && errno != EAGAIN) fail(Failure::io, "{}: read: {}", file_, std::strerror(errno));
  }
}

std::size_t ByteSource::read_compressed(char* out, std::size_t size) {
  constexpr std::size_t kPart = std::size_t{1} << 17;
  while (damage_.empty()) {
    if (const std::size_t count = decompressor_->decompress(unread_, out, size); count > 0) return count;
    damage_ = decompressor_->damage();
    if (damage_.empty() && !unread_.empty()) damage_ = "no end of it";
    if (!damage_.empty()) break;
    packed_.resize(kPart);
    packed_.resize(read_plain(packed_.data(), kPart));
    unread_ = packed_;
    if (!packed_.empty()) continue;
    if (!decompressor_->is_whole()) damage_ = "unexpected end of file";
    break;
  }
  return 0;
}

}  // namespace bertrand::io
