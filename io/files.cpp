#include "io/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "io/descriptor.h"
#include "io/error.h"
#include "io/file_names.h"
#include "io/file_replacer.h"
#include "io/input_files.h"
#include "io/signals.h"

namespace bertrand::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_write(const fs::path& file, std::size_t needed, int error) {
  if (error != ENOSPC && error != EDQUOT) refuse_call(file, "write", error);
  std::error_code ignored;
  const fs::space_info space = fs::space(parent_of(file), ignored);
  fail(Failure::io, "{}: write: {}: needed {} bytes, available {} bytes", file.string(), std::strerror(error), needed,
       ignored ? 0 : space.available);
}

int open_to_write(const fs::path& file, int how) {
  constexpr std::chrono::milliseconds kPause{50};
  how |= O_WRONLY | O_CREAT | O_CLOEXEC;
  std::error_code ignored;
  const bool is_pipe = fs::is_fifo(file, ignored);  // which open() waits for, whatever signal comes
  int descriptor = -1;
  while ((descriptor = ::open(file.c_str(), is_pipe ? how | O_NONBLOCK : how, 0644)) < 0 && is_pipe && errno == ENXIO) {
    leave_if_requested("waiting for a reader of " + file.string());
    std::this_thread::sleep_for(kPause);
  }
  if (descriptor < 0) refuse_call(file, "open", errno);
  if (is_pipe) ::fcntl(descriptor, F_SETFL, O_WRONLY);  // writes wait again
  return descriptor;
}

/// 0 or the error of fsync(). A pipe, a terminal and the directories of some file systems have none.
int sync_error(int descriptor) {
  while (::fsync(descriptor) != 0)
    if (errno != EINTR) return errno == EINVAL ? 0 : errno;
  return 0;
}

}  // namespace

void refuse_call(const fs::path& file, const char* call, int error) {
  fail(Failure::io, "{}: {}: {}", file.string(), call, std::strerror(error));
}

int Files::open(const fs::path& file, Opening opening) {
  switch (opening) {
    case Opening::create: return open_to_write(file, O_TRUNC | O_NOFOLLOW);
    case Opening::create_new: return open_to_write(file, O_EXCL | O_NOFOLLOW);
    case Opening::append: return open_to_write(file, O_APPEND | O_NOFOLLOW);
    case Opening::create_through: break;
  }
  return open_to_write(file, O_TRUNC);
}
void Files::write(int descriptor, std::span<const std::byte> bytes, const fs::path& file) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) refuse_write(file, bytes.size(), errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}
void Files::sync(int descriptor, const fs::path& file) {
  if (const int error = sync_error(descriptor)) refuse_call(file, "fsync", error);
}
void Files::close(int descriptor, const fs::path& file) {
  if (::close(descriptor) != 0 && errno != EINTR) refuse_call(file, "close", errno);
}
void Files::make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) refuse_call(directory, "mkdir", error.value());
}
void Files::sync_directory(const fs::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) refuse_call(directory, "open", errno);
  const int error = sync_error(descriptor);
  ::close(descriptor);
  if (error != 0) refuse_call(directory, "fsync", error);
}
void Files::rename(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return;
  const int error = errno;
  refuse_call(to, ("rename from " + from.string()).c_str(), error);
}
void Files::remove_all(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) refuse_call(path, "remove", error.value());
}
void Files::cut(const fs::path& file, std::uint64_t bytes) {
  const Descriptor descriptor(::open(file.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!descriptor || ::ftruncate(descriptor.number(), static_cast<off_t>(bytes)) != 0)
    refuse_call(file, "truncate", errno);
}
Files& Files::system() {
  static Files files;
  return files;
}

FileWriter::FileWriter(Files& files, const fs::path& file, Opening opening)
    : files_(files), file_(file), descriptor_(files.open(file, opening)) {}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}
void FileWriter::write(std::span<const std::byte> bytes) { files_.write(descriptor_, bytes, file_); }
void FileWriter::finish() {
  files_.sync(descriptor_, file_);
  const int descriptor = std::exchange(descriptor_, -1);
  files_.close(descriptor, file_);
}

void write_file(Files& files, const fs::path& file, std::string_view text) {
  FileWriter out(files, file);
  out.write(text);
  out.finish();
}

void replace_file(Files& files, const fs::path& file, std::string_view text) {
  FileReplacer out(files, file);
  out.write(text);
  out.publish();
}

std::string read_file(const fs::path& file) { return std::string(MappedFile(file).text()); }

MappedFile::MappedFile(const fs::path& file) {
  const Descriptor descriptor = open_to_read(file);
  if (!descriptor) refuse_open(file, errno);
  struct stat status {};
  if (::fstat(descriptor.number(), &status) != 0) refuse_call(file, "read", errno);
  if (!S_ISREG(status.st_mode))
    fail(Failure::input, "{}: expected a regular file, got {}", file.string(),
         S_ISDIR(status.st_mode) ? "a directory" : "a pipe or device; hint: put it into a file");
  if (status.st_size == 0) return;
  size_ = static_cast<std::size_t>(status.st_size);
  data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor.number(), 0);
  if (data_ != MAP_FAILED) return;
  if (errno != ENOMEM) refuse_call(file, "read", errno);
  fail(Failure::memory, "{}: read: out of memory: needed {} bytes; hint: ulimit -v limits what a program may have",
       file.string(), size_);
}
void MappedFile::let_go() const {
  if (data_) ::madvise(data_, size_, MADV_DONTNEED);
}
MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

}  // namespace bertrand::io
