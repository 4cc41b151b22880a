// Waiting for what another process or thread does.
#pragma once
#include <chrono>
#include <thread>

namespace support {

/// Asks every millisecond until the answer is yes, for two minutes at most: on a busy machine a program may take many
/// seconds to begin. Returns the last answer.
template <class IsSo>
bool soon(const IsSo& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace support
