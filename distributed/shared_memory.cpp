#include "distributed/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <string>

#include "io/error.h"

namespace bertrand::distributed {
namespace {

[[noreturn]] void refuse(const std::string& call) {
  fail(Failure::distributed, "shared memory: {}: {}", call, std::strerror(errno));
}

/// Memory without a name; none if the system gives none.
io::Descriptor unnamed_memory() {
  constexpr const char* kName = "bertrand-sums";
#ifdef MFD_NOEXEC_SEAL  // no program is run from it; some systems give no other
  const int descriptor = ::memfd_create(kName, MFD_CLOEXEC | MFD_NOEXEC_SEAL);
  if (descriptor >= 0 || errno != EINVAL)
    return io::Descriptor(descriptor);  // EINVAL: the kernel is older than the headers
#endif
  return io::Descriptor(::memfd_create(kName, MFD_CLOEXEC));
}

std::byte* mapped_at(int descriptor, std::size_t bytes) {
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) refuse("mmap");
  return static_cast<std::byte*>(data);
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : place_{.pid = ::getpid(), .bytes = bytes}, memory_(unnamed_memory()) {
  if (!memory_) refuse("memfd_create");
  std::random_device random;
  place_.token = std::uint64_t{random()} << 32 | random();
  // All of it now: a page that is missing later would be a signal, not an error.
  do errno = ::posix_fallocate(memory_.number(), 0, static_cast<off_t>(mapped()));
  while (errno == EINTR);
  if (errno != 0) refuse("posix_fallocate");
  data_ = mapped_at(memory_.number(), mapped());
  std::memcpy(data_, &place_.token, sizeof place_.token);
  place_.descriptor = memory_.number();
}

SharedMemory::SharedMemory(const Place& place) : place_(place) {
  const std::string name = fmt::format("/proc/{}/fd/{}", place.pid, place.descriptor);
  const io::Descriptor descriptor(::open(name.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!descriptor) refuse(name);
  const off_t length = ::lseek(descriptor.number(), 0, SEEK_END);
  if (length != static_cast<off_t>(mapped()))
    fail(Failure::distributed, "shared memory: {}: expected {} bytes, got {}", name, mapped(), length);
  data_ = mapped_at(descriptor.number(), mapped());
  if (std::memcmp(data_, &place.token, sizeof place.token) == 0) return;
  ::munmap(data_, mapped());
  fail(Failure::distributed, "shared memory: {}: expected the memory of this run, got another", name);
}

SharedMemory::~SharedMemory() { ::munmap(data_, mapped()); }

}  // namespace bertrand::distributed
