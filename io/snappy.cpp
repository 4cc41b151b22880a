// Literals, and copies of what came before them.
#include "io/snappy.h"

#include <algorithm>
#include <cstdint>

namespace bertrand::io {
namespace {

class SnappyReader {
 public:
  SnappyReader(std::string_view bytes, const std::string& place, Failure failure)
      : rest_(bytes), place_(place), failure_(failure) {}

  std::string run(std::size_t most) {
    size_ = length();
    if (size_ > most) fail(failure_, "{}: Snappy: expected at most {} bytes, got a length of {}", place_, most, size_);
    // A copy of 64 bytes takes 3, so that a lie about the length costs no memory.
    out_.reserve(std::min(size_, rest_.size() * 22));
    while (!rest_.empty()) element();
    if (out_.size() != size_)
      fail(failure_, "{}: Snappy: expected {} bytes, as its length says, got {}", place_, size_, out_.size());
    return std::move(out_);
  }

 private:
  /// A number of `bytes` bytes, little-endian.
  std::size_t number(std::size_t bytes) {
    const std::string_view digits = take(bytes);
    std::size_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= static_cast<std::size_t>(static_cast<unsigned char>(digits[i])) << (8 * i);
    return value;
  }

  std::size_t length() {
    constexpr int kMostBits = 35;  // five bytes of seven
    std::size_t value = 0;
    for (int shift = 0; shift < kMostBits; shift += 7) {
      const std::size_t byte = number(1);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail(failure_, "{}: Snappy: length: expected at most 5 bytes, got more", place_);
  }

  std::string_view take(std::size_t size) {
    if (size > rest_.size())
      fail(failure_, "{}: Snappy: expected {} bytes more, got {}; hint: is it cut short?", place_, size, rest_.size());
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  void element() {
    const std::size_t tag = number(1);
    switch (tag & 3) {
      case 0: {
        constexpr std::size_t kShort = 60;  // lengths above are in bytes of their own
        std::size_t less_one = tag >> 2;
        if (less_one >= kShort) less_one = number(less_one - kShort + 1);
        check_room(less_one + 1);
        out_.append(take(less_one + 1));
        return;
      }
      case 1: return copy((tag >> 2 & 7) + 4, (tag >> 5) << 8 | number(1));
      case 2: return copy((tag >> 2) + 1, number(2));
      default: return copy((tag >> 2) + 1, number(4));
    }
  }

  void check_room(std::size_t more) const {
    if (more > size_ - out_.size())
      fail(failure_, "{}: Snappy: expected {} bytes, as its length says, got more", place_, size_);
  }

  /// The source may reach into what the copy itself writes.
  void copy(std::size_t count, std::size_t back) {
    check_room(count);
    if (back == 0 || back > out_.size())
      fail(failure_, "{}: Snappy: expected a copy from 1 to {} bytes back, got {}", place_, out_.size(), back);
    for (std::size_t i = 0; i < count; ++i) out_.push_back(out_[out_.size() - back]);
  }

  std::string_view rest_;
  const std::string& place_;
  Failure failure_;
  std::size_t size_ = 0;
  std::string out_;
};

}  // namespace

std::string decompress_snappy(std::string_view bytes, std::size_t most, const std::string& place, Failure failure) {
  return SnappyReader(bytes, place, failure).run(most);
}

}  // namespace bertrand::io
