// Memory that processes of one host share. It has no name and lies in no file system that is mounted, so nothing is
// left behind however they end, and the small /dev/shm of a container does not limit it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "io/descriptor.h"

namespace bertrand::distributed {

class SharedMemory {
 public:
  /// Where other processes find it. It travels as bytes.
  struct Place {
    int pid = 0, descriptor = -1;
    std::uint64_t bytes = 0;
    std::uint64_t token = 0;  ///< stands in the memory: another host has a process of this number, too
  };

  /// Makes `bytes` bytes, which are zero. Throws Error(Failure::distributed) if the system gives none.
  explicit SharedMemory(std::size_t bytes);
  /// That of another process, which must live. Throws Error(Failure::distributed) if it is not within reach.
  explicit SharedMemory(const Place& place);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  const Place& place() const { return place_; }
  std::span<std::byte> bytes() const { return {data_ + kBegin, place_.bytes}; }

 private:
  static constexpr std::size_t kBegin = 64;  // after the token
  std::size_t mapped() const { return kBegin + place_.bytes; }

  Place place_;
  io::Descriptor memory_;  // of the process that made it
  std::byte* data_ = nullptr;
};

}  // namespace bertrand::distributed
