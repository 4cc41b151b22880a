#include "io/temporary_name.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "io/file_names.h"
#include "io/files.h"
#include "io/machine.h"

namespace bertrand::io {
namespace {

namespace fs = std::filesystem;

/// What stands before the number of the process.
std::string beginning(const fs::path& file) { return fmt::format("{}.tmp-{}-", file.string(), host_name()); }

constexpr int kTurns = 100;  // beyond any number of processes that look for leftovers at the same moment

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Whether open() failed because this process, or the system, may open no further file: whether another process has
/// locked the file is not known then.
bool is_out_of_descriptors(int error) { return error == EMFILE || error == ENFILE; }

/// A file or directory, open to lock it. A link is not followed.
Descriptor opened(const fs::path& path) {
  constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), O_RDWR | kFlags);  // NFS locks no file that is only read
  return Descriptor(descriptor < 0 && errno == EISDIR ? ::open(path.c_str(), O_RDONLY | O_DIRECTORY | kFlags)
                                                      : descriptor);
}

/// Holds the lock of a file or directory as long as it lives, if there is one to be had at once.
struct Lock {
  explicit Lock(const fs::path& path)
      : file(opened(path)), error(file && ::flock(file.number(), LOCK_EX | LOCK_NB) == 0 ? 0 : errno) {}

  bool is_held() const { return error == 0; }
  bool is_of_another() const { return file && error == EWOULDBLOCK; }

  const Descriptor file;
  const int error;
};

void remove_leftovers(const fs::path& file) {
  const fs::path own = temporary_name(file);
  const std::string first = fs::path(beginning(file)).filename().string();
  const fs::path parent = parent_of(own);
  std::error_code error;  // what cannot be listed is left
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end; entry.increment(error))
    if (const std::string name = entry->path().filename().string();
        name.starts_with(first) && is_number(std::string_view(name).substr(first.size())))
      found.push_back(own.parent_path() / name);
  for (const fs::path& path : found) {
    if (fs::is_symlink(fs::symlink_status(path, error))) {  // nobody writes so: in our way, or somebody's own
      if (path == own) fs::remove(path, error);
      continue;
    }
    // It stays locked until it is gone: its writer may be about to lock it, and then begins anew. Without locks, what
    // has our own number is left all the same.
    const Lock lock(path);
    const bool lockless = path == own && !lock.is_of_another() && (lock.file || lock.error == EACCES);
    if (lock.is_held() ? is_named(lock.file, path) : lockless) fs::remove_all(path, error);
  }
}

}  // namespace

void remove_unless_written(Files& files, const fs::path& path) {
  const Lock lock(path);
  if (is_out_of_descriptors(lock.error)) refuse_call(path, "open", lock.error);
  if (!lock.is_of_another()) files.remove_all(path);
}

fs::path temporary_name(const fs::path& file) { return fmt::format("{}{}", beginning(file), ::getpid()); }

TemporaryName::TemporaryName(const fs::path& file, const std::function<void(const fs::path&)>& create)
    : path_(temporary_name(file)) {
  std::error_code ignored;
  for (int turn = 1; turn <= kTurns; ++turn) {
    remove_leftovers(file);
    create(path_);
    lock_ = opened(path_);
    const int error = lock_ ? 0 : errno;
    if (is_out_of_descriptors(error)) {
      fs::remove(path_, ignored);
      refuse_call(path_, "open", error);
    }
    if (error == ENOENT) continue;
    if (!lock_) return;
    while (::flock(lock_.number(), LOCK_EX) != 0 && errno == EINTR) {
    }
    if (is_named(lock_, path_)) return;
    lock_.close();
    // What is still there, though it has another number, lies in a file system that numbers a name and an open file
    // differently. After the last turn it is written without a lock.
    if (turn < kTurns) fs::remove(path_, ignored);
  }
}

}  // namespace bertrand::io
