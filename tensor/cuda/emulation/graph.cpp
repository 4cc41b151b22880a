// What the emulation gives for CUDA graphs: a captured stream keeps work instead of doing it.
#include <atomic>

#include "tensor/cuda/emulation/stream.h"

struct EmulatedLaunchableGraph {
  std::vector<std::function<void()>> work;
};

namespace {
thread_local int captured_streams = 0;
std::atomic<bool> instantiation_fails{false}, launch_fails{false};
}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || stream->capture) return cudaErrorInvalidValue;
  stream->capture = std::make_unique<EmulatedGraph>();
  ++captured_streams;
  return cudaGetLastError();
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (!stream->capture) return cudaErrorInvalidValue;
  --captured_streams;
  const std::unique_ptr<EmulatedGraph> capture = std::move(stream->capture);
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  *graph = new EmulatedGraph(std::move(*capture));
  return cudaGetLastError();
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* launchable, cudaGraph_t graph, unsigned long long) {
  if (instantiation_fails.exchange(false)) return cudaErrorMemoryAllocation;
  *launchable = new EmulatedLaunchableGraph{graph->work};
  return cudaGetLastError();
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) {
  if (launch_fails.exchange(false)) return cudaErrorMemoryAllocation;
  if (const cudaError_t error = bertrand::cuda::emulation::begin_work(stream); error != cudaSuccess) return error;
  for (const auto& one : graph->work) one();
  return cudaGetLastError();
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
  delete graph;
  return cudaSuccess;
}

namespace bertrand::cuda::emulation {

bool captures() { return captured_streams > 0; }
void fail_instantiation() { instantiation_fails = true; }
void fail_graph_launch() { launch_fails = true; }

cudaError_t do_or_capture(cudaStream_t stream, std::function<void()> work, double milliseconds) {
  if (stream && stream->capture) {
    stream->capture->work.push_back(std::move(work));
    return cudaGetLastError();
  }
  if (const cudaError_t error = begin_work(stream, milliseconds); error != cudaSuccess) return error;
  work();
  return cudaGetLastError();
}

}  // namespace bertrand::cuda::emulation
