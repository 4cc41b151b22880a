// Shared memory that knows which thread touched it: what a kernel indexes are cells that report each read and write.
#pragma once
#include <fmt/format.h>

#include <type_traits>

#include "tensor/cuda/emulation/block.h"

namespace bertrand::cuda {

template <class T>
class SharedCell {
 public:
  SharedCell(T& value, emulation::Shadow& shadow, std::int64_t index) : value_(value), shadow_(shadow), index_(index) {}
  SharedCell(const SharedCell&) = default;

  operator T() const {
    emulation::note_read(shadow_, index_);
    return value_;
  }
  SharedCell& operator=(T value) {
    emulation::note_write(shadow_, index_);
    value_ = value;
    return *this;
  }
  SharedCell& operator=(const SharedCell& other) { return *this = static_cast<T>(other); }
  SharedCell& operator+=(T value) { return *this = static_cast<T>(*this) + value; }

 private:
  T& value_;
  emulation::Shadow& shadow_;
  std::int64_t index_;
};

/// Used as `__shared__ SharedArray<float, 32> partial;`.
template <class T, int kCount>
class SharedArray {
 public:
  SharedCell<T> operator[](std::int64_t i) {
    if (i < 0 || i >= kCount) emulation::stop(fmt::format("shared element {} of {}", i, kCount));
    return {values_[i], shadows_[i], i};
  }

 private:
  T values_[kCount];
  emulation::Shadow shadows_[kCount];
};

/// A part of the dynamic shared memory.
template <class T>
class SharedSpan {
 public:
  SharedSpan(std::int64_t first_byte, std::int64_t count) : first_byte_(first_byte), count_(count) {
    if (first_byte % static_cast<std::int64_t>(sizeof(T)) != 0 ||
        first_byte + count * static_cast<std::int64_t>(sizeof(T)) >
            static_cast<std::int64_t>(emulation::dynamic_shared_bytes()))
      emulation::stop(fmt::format("{} elements of {} bytes from byte {} of {} bytes of dynamic shared memory", count,
                                  sizeof(T), first_byte, emulation::dynamic_shared_bytes()));
  }
  SharedCell<T> operator[](std::int64_t i) const {
    if (i < 0 || i >= count_) emulation::stop(fmt::format("shared element {} of {}", i, count_));
    const std::int64_t byte = first_byte_ + i * static_cast<std::int64_t>(sizeof(T));
    return {reinterpret_cast<T&>(emulation::dynamic_shared_data()[byte]), emulation::dynamic_shared_shadows()[byte], i};
  }

 private:
  std::int64_t first_byte_, count_;
};

}  // namespace bertrand::cuda
