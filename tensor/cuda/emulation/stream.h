// Streams, events and graphs of the emulated GPU.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "tensor/cuda/emulation/runtime.h"

/// Work in its order, with the arguments that it was asked for with.
struct EmulatedGraph {
  std::vector<std::function<void()>> work;
  bool invalid = false;
};

/// Copies from pinned memory wait here until something must come after them, as they may on a GPU: a write to
/// the memory before that shows in what arrives.
struct EmulatedStream {
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  std::vector<Copy> waiting;
  std::uint64_t copies = 0, copied = 0;  // asked for, and ended
  double clock = 0;
  std::vector<bertrand::cuda::emulation::Done> waits_for;  // what other GPUs have to do first
  std::unique_ptr<EmulatedGraph> capture;                  // where work goes, if it is not done

  void flush() {
    for (const Copy& copy : waiting) std::memcpy(copy.to, copy.from, copy.bytes);
    waiting.clear();
    copied = copies;
  }
};
struct EmulatedEvent {
  EmulatedStream* stream = nullptr;
  double time = 0;
  std::uint64_t copies = 0;  // asked for before it
  bool captured = false;     // in a graph, so that the host cannot ask for it
  std::vector<bertrand::cuda::emulation::Done> waits_for;
  bool done() const {
    return std::ranges::all_of(waits_for, [](const auto& one) { return one->load(); });
  }
};

namespace bertrand::cuda::emulation {
/// For what a captured stream does not take: the capture cannot become a graph any more.
inline cudaError_t refuse_in_capture(cudaStream_t stream) {
  if (!stream || !stream->capture) return cudaSuccess;
  stream->capture->invalid = true;
  return cudaErrorStreamCaptureUnsupported;
}
/// Whether this thread captures a stream.
bool captures();
}  // namespace bertrand::cuda::emulation
