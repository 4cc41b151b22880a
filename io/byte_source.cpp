// Plain and compressed files behind one read().
#include "io/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/error.h"
#include "io/input_files.h"
#include "io/units.h"

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
  descriptor_ = file.empty() ? ::dup(STDIN_FILENO) : ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) refuse_open(file_, errno);
  const off_t start = ::lseek(descriptor_, 0, SEEK_CUR);
  if (start < 0) return;  // what is read cannot be read again
  try {
    std::string beginning(kBeginning, '\0');
    beginning.resize(read(beginning.data(), beginning.size()));
    ::lseek(descriptor_, start, SEEK_SET);
    const bool plain = is_plain && is_plain(beginning);
    if (beginning.starts_with("\x1F\x8B") && !plain) open_gzip();
    else if (is_zstd(beginning) && !plain) zstd_ = std::make_unique<ZstdStream>(file_);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

ByteSource::~ByteSource() {
  if (gzip_ != nullptr) ::gzclose(gzip_);
  else ::close(descriptor_);
}

void ByteSource::open_gzip() {
  gzip_ = ::gzdopen(descriptor_, "rb");
  if (gzip_ == nullptr) fail(Failure::memory, "{}: gzip: out of memory", file_);
  ::gzbuffer(gzip_, 1 << 17);
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
  if (gzip_ != nullptr) return read_gzip(out, size);
  return zstd_ != nullptr ? read_zstd(out, size) : read_plain(out, size);
}

bool ByteSource::wait(int milliseconds) const {
  if (is_compressed()) return true;
  pollfd input{.fd = descriptor_, .events = POLLIN, .revents = 0};
  return ::poll(&input, 1, milliseconds) > 0;
}

std::size_t ByteSource::read_plain(char* out, std::size_t size) {
  while (true) {
    const ssize_t count = ::read(descriptor_, out, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) fail(Failure::io, "{}: read: {}", file_, std::strerror(errno));
  }
}

std::size_t ByteSource::read_gzip(char* out, std::size_t size) {
  constexpr std::size_t kStep = std::size_t{1} << 20;
  const auto step = static_cast<unsigned>(std::min(size, kStep));
  const int count = ::gzread(gzip_, out, step);
  if (count < static_cast<int>(step)) {
    int code = Z_OK;
    const char* reason = ::gzerror(gzip_, &code);
    if (code == Z_ERRNO) fail(Failure::io, "{}: read: {}", file_, std::strerror(errno));
    if (code != Z_OK && code != Z_STREAM_END) damage_ = gzip_reason(reason);
  }
  return static_cast<std::size_t>(std::max(count, 0));
}

std::size_t ByteSource::read_zstd(char* out, std::size_t size) {
  constexpr std::size_t kPart = std::size_t{1} << 17;
  while (damage_.empty()) {
    if (const std::size_t count = zstd_->decompress(unread_, out, size); count > 0) return count;
    damage_ = zstd_->damage();
    if (damage_.empty() && !unread_.empty()) damage_ = "no end of it";
    if (!damage_.empty()) break;
    packed_.resize(kPart);
    packed_.resize(read_plain(packed_.data(), kPart));
    unread_ = packed_;
    if (!packed_.empty()) continue;
    if (!zstd_->is_whole()) damage_ = "unexpected end of file";
    break;
  }
  return 0;
}

}  // namespace bertrand::io
