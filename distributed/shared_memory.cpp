#include "distributed/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "io/error.h"

namespace bertrand::distributed {
namespace {

/// Closes its descriptor unless it is released.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

[[noreturn]] void refuse(const std::string& call) {
  fail(Failure::distributed, "shared memory: {}: {}", call, std::strerror(errno));
}

/// A descriptor of memory without a name; -1 if the system gives none.
int unnamed_memory() {
  constexpr const char* kName = "bertrand-sums";
#ifdef MFD_NOEXEC_SEAL  // no program is run from it; some systems give no other
  const int descriptor = ::memfd_create(kName, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (descriptor >= 0 || errno != EINVAL) return descriptor;  // EINVAL: the kernel is older than the headers
#endif
  return ::memfd_create(kName, MFD_CLOEXEC);
}

std::byte* mapped_at(int descriptor, std::size_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) refuse("mmap");
  return static_cast<std::byte*>(data);
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : place_{.pid = ::getpid(), .bytes = bytes} {
  Descriptor descriptor(unnamed_memory());
  if (descriptor.number() < 0) refuse("memfd_create");
  // All of it now: a page that is missing later would be a signal, not an error.
  do errno = ::posix_fallocate(descriptor.number(), 0, static_cast<off_t>(mapped()));
  while (errno == EINTR);
  if (errno != 0) refuse("posix_fallocate");
  data_ = mapped_at(descriptor.number(), mapped());
  std::random_device random;
  place_.token = std::uint64_t{random()} << 32 | random();
  std::memcpy(data_, &place_.token, sizeof place_.token);
  place_.descriptor = descriptor.release();
}

SharedMemory::SharedMemory(const Place& place) : place_(place) {
  const std::string name = fmt::format("/proc/{}/fd/{}", place.pid, place.descriptor);
  const Descriptor descriptor(::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (descriptor.number() < 0) refuse(name);
  place_.descriptor = -1;
  const off_t length = ::lseek(descriptor.number(), 0, SEEK_END);
  if (length != static_cast<off_t>(mapped()))
    fail(Failure::distributed, "shared memory: {}: expected {} bytes, got {}", name, mapped(), length);
  data_ = mapped_at(descriptor.number(), mapped());
  if (std::memcmp(data_, &place.token, sizeof place.token) == 0) return;
  ::munmap(data_, mapped());
  fail(Failure::distributed, "shared memory: {}: expected the memory of this run, got another", name);
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, mapped());
  if (place_.descriptor >= 0) ::close(place_.descriptor);
}

}  // namespace bertrand::distributed
