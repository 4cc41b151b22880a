// A library for LD_PRELOAD that disturbs the calls with which a program changes files, as scripts/kill_campaign.sh
// asks.
//   FAULT_AT=k   the k-th such call is the one that is disturbed; 0: none
//   FAULT=kill   SIGKILL in place of the call; a write has put down a part of its bytes
//   FAULT=eio    this call alone fails with EIO
//   FAULT=full   from here on nothing is written or made: ENOSPC. Of the first write a part is put down
//   FAULT_COUNT  a file that is told at exit how many such calls there were
// Streams of the terminal do not count.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<long> calls{0};

long asked_at() {
  const char* const text = std::getenv("FAULT_AT");
  return text != nullptr ? std::atol(text) : 0;
}
bool asked(const char* fault) {
  const char* const text = std::getenv("FAULT");
  return text != nullptr && std::strcmp(text, fault) == 0;
}

enum class Need { space, none };
enum class Answer { go_on, fail, part_then_fail, part_then_die };

/// What is to become of this call, which is counted.
Answer answer_to(Need need) {
  static const long at = asked_at();
  static const bool kill = asked("kill"), eio = asked("eio"), full = asked("full");
  const long number = ++calls;
  if (at == 0 || number < at) return Answer::go_on;
  if (kill) return Answer::part_then_die;
  if (eio && number == at) return errno = EIO, Answer::fail;
  if (full && need == Need::space) return errno = ENOSPC, number == at ? Answer::part_then_fail : Answer::fail;
  return Answer::go_on;
}

/// Whether a call that takes no bytes may go on.
bool goes_on(Need need) {
  const Answer answer = answer_to(need);
  if (answer == Answer::part_then_die) ::raise(SIGKILL);
  return answer == Answer::go_on;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_file(int descriptor) {
  struct stat status {};
  const int before = errno;
  const bool regular = descriptor > 2 && ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  errno = before;
  return regular;
}

int open_file(const char* path, int flags, mode_t mode) {
  static const auto real = next<int (*)(int, const char*, int, mode_t)>("openat");
  if ((flags & O_CREAT) != 0 && !goes_on(Need::space)) return -1;
  return real(AT_FDCWD, path, flags, mode);
}

mode_t mode_of(int flags, va_list more) {
  return (flags & O_CREAT) != 0 ? static_cast<mode_t>(va_arg(more, int)) : mode_t{0};
}

[[gnu::destructor]] void tell() {
  const char* const file = std::getenv("FAULT_COUNT");
  if (file == nullptr) return;
  if (std::FILE* const out = std::fopen(file, "w")) {
    std::fprintf(out, "%ld\n", calls.load());
    std::fclose(out);
  }
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_file(path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  return open_file(path, flags, mode);
}

ssize_t write(int descriptor, const void* bytes, size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, size_t)>("write");
  if (!is_file(descriptor)) return real(descriptor, bytes, size);
  switch (answer_to(Need::space)) {
    case Answer::go_on: return real(descriptor, bytes, size);
    case Answer::fail: return -1;
    case Answer::part_then_fail:
      if (size > 1) return real(descriptor, bytes, size / 2);
      errno = ENOSPC;
      return -1;
    case Answer::part_then_die: real(descriptor, bytes, size / 2); ::raise(SIGKILL);
  }
  return -1;
}
ssize_t writev(int descriptor, const iovec* parts, int count) {
  static const auto real = next<ssize_t (*)(int, const iovec*, int)>("writev");
  if (is_file(descriptor) && !goes_on(Need::space)) return -1;
  return real(descriptor, parts, count);
}
int fsync(int descriptor) {
  static const auto real = next<int (*)(int)>("fsync");
  return goes_on(Need::none) ? real(descriptor) : -1;
}
int rename(const char* from, const char* to) {
  static const auto real = next<int (*)(const char*, const char*)>("rename");
  return goes_on(Need::none) ? real(from, to) : -1;
}
int mkdir(const char* path, mode_t mode) {
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  return goes_on(Need::space) ? real(path, mode) : -1;
}
int ftruncate(int descriptor, off_t size) {
  static const auto real = next<int (*)(int, off_t)>("ftruncate");
  return goes_on(Need::none) ? real(descriptor, size) : -1;
}
int unlink(const char* path) {
  static const auto real = next<int (*)(const char*)>("unlink");
  return goes_on(Need::none) ? real(path) : -1;
}
int unlinkat(int directory, const char* path, int flags) {
  static const auto real = next<int (*)(int, const char*, int)>("unlinkat");
  return goes_on(Need::none) ? real(directory, path, flags) : -1;
}
int remove(const char* path) {
  static const auto real = next<int (*)(const char*)>("remove");
  return goes_on(Need::none) ? real(path) : -1;
}

}  // extern "C"
