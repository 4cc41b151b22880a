// An open file or directory that is closed when its owner goes.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <utility>

namespace bertrand::io {

class Descriptor {
 public:
  /// `number` as open() gives it: below 0 there is none, and errno says why.
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  explicit operator bool() const { return number_ >= 0; }
  int number() const { return number_; }
  /// Now, and with it its lock goes.
  void close();

 private:
  int number_;
};

/// Opens a file to read. A pipe that nobody writes yet is open at once, so that only the wait for its bytes takes long.
/// If there is none, errno says why.
Descriptor open_to_read(const std::filesystem::path& file);

/// Reads bytes from `offset` on, again if a signal interrupts it. Returns how many: fewer than `size` at the end of the
/// file; below 0 if it fails, and errno says why.
ssize_t read_at(int descriptor, char* bytes, std::size_t size, std::uint64_t offset);

/// Whether `path`, a link not followed, still names the open file: another process may have removed or replaced it.
bool is_named(const Descriptor& open, const std::filesystem::path& path);

/// Whether what is at `path`, a link not followed, belongs to neither this user nor root: somebody may have planted it
/// there to have a file of this user's written over.
bool is_of_another_user(const std::filesystem::path& path);

}  // namespace bertrand::io
