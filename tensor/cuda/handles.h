// What CUDA hands out and wants back.
#pragma once
#include <utility>

#include "tensor/cuda/launch.h"

namespace bertrand::cuda {

class Stream {
 public:
  Stream() { check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { check_cuda(cudaEventRecord(event_, stream), "event"); }
  void wait() { check_cuda(cudaEventSynchronize(event_), "event"); }  ///< for what was recorded; at once if nothing was

 private:
  cudaEvent_t event_ = nullptr;
};

/// Host memory that the card can read by itself.
class Pinned {
 public:
  explicit Pinned(std::size_t bytes) { check_cuda(cudaMallocHost(&data_, bytes), "pinned memory"); }
  ~Pinned() { cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
};

}  // namespace bertrand::cuda
