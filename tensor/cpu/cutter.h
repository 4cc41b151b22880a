// How a kernel describes the memory that it works in: once, for its size and for its parts.
#pragma once
#include <cstddef>

#include "tensor/cpu/panels.h"

namespace bertrand::cpu {

/// Cuts memory into named parts, each from a line of the cache on; without memory it only counts.
class Cutter {
 public:
  explicit Cutter(std::byte* memory = nullptr) : memory_(memory) {}
  template <class E>
  E* take(Dim count) {
    auto* const part = memory_ ? reinterpret_cast<E*>(memory_ + used_) : nullptr;
    used_ += round_up(count * static_cast<Dim>(sizeof(E)), 64);
    return part;
  }
  Dim used() const { return used_; }

 private:
  std::byte* memory_;
  Dim used_ = 0;
};

/// What a Memory of these arguments takes.
template <class Memory, class... Arguments>
std::size_t bytes_of(const Arguments&... arguments) {
  Cutter counted;
  static_cast<void>(Memory(counted, arguments...));
  return static_cast<std::size_t>(counted.used());
}

}  // namespace bertrand::cpu
