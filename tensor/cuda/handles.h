// Owners of what CUDA creates and must destroy.
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

/// A mark in a stream.
class Event {
 public:
  enum class Kind { plain, timed };
  explicit Event(Kind kind = Kind::plain) {
    check_cuda(cudaEventCreateWithFlags(&event_, kind == Kind::timed ? cudaEventDefault : cudaEventDisableTiming),
               "event");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) const { check_cuda(cudaEventRecord(event_, stream), "event"); }
  /// `stream` waits until what was recorded is done.
  void hold(cudaStream_t stream) const { check_cuda(cudaStreamWaitEvent(stream, event_, 0), "event"); }
  bool is_done() const {
    const cudaError_t state = cudaEventQuery(event_);
    if (state != cudaErrorNotReady) check_cuda(state, "event");
    else cudaGetLastError();  // which is no error that a later call should find
    return state == cudaSuccess;
  }
  /// Waits until what was recorded is done; returns at once if nothing was.
  void wait() const { check_cuda(cudaEventSynchronize(event_), "event"); }
  /// Between two timed marks; waits for this one.
  float milliseconds_since(const Event& begin) const {
    wait();
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "event");
    return milliseconds;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// The work of a stream, kept instead of done, from when this is made until end(). All of it is asked for by one
/// thread.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  }
  ~Capture() {
    if (!ended_) cudaStreamEndCapture(stream_, &graph_);
    if (graph_) cudaGraphDestroy(graph_);
    cudaGetLastError();  // what went wrong is known, and no reason for later calls to fail
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  /// It stays this object's.
  cudaGraph_t end() {
    ended_ = true;
    check_cuda(cudaStreamEndCapture(stream_, &graph_), "capture");
    return graph_;
  }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  bool ended_ = false;
};

/// A graph that can be launched.
class LaunchableGraph {
 public:
  explicit LaunchableGraph(cudaGraph_t graph) { check_cuda(cudaGraphInstantiate(&graph_, graph, 0), "capture"); }
  ~LaunchableGraph() { cudaGraphExecDestroy(graph_); }
  LaunchableGraph(const LaunchableGraph&) = delete;
  LaunchableGraph& operator=(const LaunchableGraph&) = delete;
  void launch(cudaStream_t stream) const { check_cuda(cudaGraphLaunch(graph_, stream), "launch"); }

 private:
  cudaGraphExec_t graph_ = nullptr;
};

/// Host memory that the GPU can read by itself.
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
