// The part of CUDA's runtime that this project calls, with the names, arguments and return values of <cuda_runtime.h>.
#pragma once
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>

#include "tensor/cuda/emulation/block.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInsufficientDriver = 35,
  cudaErrorInvalidDevice = 101,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorECCUncorrectable = 214,
  cudaErrorNotReady = 600,
  cudaErrorIllegalAddress = 700,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
  cudaErrorCapturedEvent = 907
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum cudaMemPoolAttr {
  cudaMemPoolAttrReleaseThreshold = 4,
  cudaMemPoolAttrReservedMemCurrent = 5,
  cudaMemPoolAttrUsedMemCurrent = 7
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaMemLocationType { cudaMemLocationTypeDevice = 1 };
enum cudaMemAccessFlags { cudaMemAccessFlagsProtReadWrite = 3 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2;

struct cudaDeviceProp {
  char name[256];
  std::size_t totalGlobalMem;
  int major, minor;
};
struct cudaMemAccessDesc {
  struct {
    cudaMemLocationType type;
    int id;
  } location;
  cudaMemAccessFlags flags;
};
struct cudaFuncAttributes {};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  struct EmulatedStream* stream;
};
using cudaStream_t = EmulatedStream*;
using cudaEvent_t = struct EmulatedEvent*;
using cudaMemPool_t = struct EmulatedPool*;
using cudaGraph_t = struct EmulatedGraph*;
using cudaGraphExec_t = struct EmulatedLaunchableGraph*;

cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaMallocHost(void** data, std::size_t bytes);
cudaError_t cudaFreeHost(void* data);
cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t least);
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, std::size_t count);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* launchable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph);

namespace bertrand::cuda::emulation {
std::string name_of_function(const void* function);
bool has_kernels();  ///< for the GPU
/// False if a block of this capability has less.
bool set_dynamic_shared_limit(const void* function, std::size_t bytes);
void check_dynamic_shared(const void* function, std::size_t bytes);

/// Before work begins in a stream: ends the copies that it must come after, and lets the stream's clock go on. What it
/// returns is not cudaSuccess on a GPU that is lost, and in a stream that is captured.
cudaError_t begin_work(cudaStream_t stream, double milliseconds = 0);
/// The same, and does the work; if the stream is captured it keeps the work for the graph instead.
cudaError_t do_or_capture(cudaStream_t stream, std::function<void()> work, double milliseconds = 0);

/// What is asked for is done at once, but for what waits for another GPU: its stream goes on when `done` says so.
using Done = std::shared_ptr<const std::atomic<bool>>;
void add_to_stream(cudaStream_t stream, Done done);
/// Returns when the stream has got to where it is asked to work.
void wait_for_stream(cudaStream_t stream);

/// Whether a GPU may read and write what another one's pool holds.
bool reaches(int gpu, int other);

// ---- what tests may ask for, until they ask again
void limit_memory(std::size_t bytes);  ///< how much device memory there is
void fail_allocation(int number);      ///< that one from now on, counted from 1, finds no memory, asked twice; 0: none
void fragment_memory();                ///< no allocation finds memory until the pool is trimmed
void set_capability(int major, int minor);
void build_for(int major);    ///< the least capability that the emulated module has kernels for
void fail_instantiation();    ///< of the next graph: no memory
void fail_graph_launch();     ///< the next one: no memory
void lose_gpu(int launches);  ///< after so many more launches every call fails; below 0: never

/// Counts since the program began.
struct Counts {
  int launches = 0, allocations = 0;  ///< a graph is one launch
  std::size_t bytes_in_use = 0;       ///< now
};
Counts counts();
/// How often the host has waited for a stream, with all that was asked of it, or for a copy to the GPU.
std::int64_t synchronizations();
}  // namespace bertrand::cuda::emulation

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  namespace emulation = bertrand::cuda::emulation;
  const auto* const function = reinterpret_cast<const void*>(kernel);
  emulation::check_dynamic_shared(function, config->dynamicSmemBytes);
  return emulation::do_or_capture(
      config->stream, [=, values = std::tuple<Parameters...>(static_cast<Parameters>(arguments)...), of = *config] {
        emulation::run(emulation::name_of_function(function), {of.gridDim, of.blockDim, of.dynamicSmemBytes},
                       [&] { std::apply(kernel, values); });
      });
}
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, Kernel*) {
  return bertrand::cuda::emulation::has_kernels() ? cudaSuccess : cudaErrorNoKernelImageForDevice;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute, int bytes) {
  return bertrand::cuda::emulation::set_dynamic_shared_limit(reinterpret_cast<const void*>(kernel),
                                                             static_cast<std::size_t>(bytes))
             ? cudaSuccess
             : cudaErrorInvalidValue;
}

// ---- what kernels call

inline void __syncthreads(const std::source_location& where = std::source_location::current()) {
  bertrand::cuda::emulation::block_barrier(where);
}
inline void __syncwarp(unsigned mask = 0xffffffffu,
                       const std::source_location& where = std::source_location::current()) {
  bertrand::cuda::emulation::warp_barrier(mask, where);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int from, int = 32,
              const std::source_location& where = std::source_location::current()) {
  const bertrand::cuda::emulation::Exchange& all =
      bertrand::cuda::emulation::exchange(mask, &value, sizeof value, where);
  return all.of<T>(static_cast<unsigned>(from));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int = 32,
                  const std::source_location& where = std::source_location::current()) {
  const bertrand::cuda::emulation::Exchange& all =
      bertrand::cuda::emulation::exchange(mask, &value, sizeof value, where);
  return all.of<T>(bertrand::cuda::emulation::lane() ^ static_cast<unsigned>(bits));
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              const std::source_location& where = std::source_location::current()) {
  const auto& all = bertrand::cuda::emulation::exchange(mask, &predicate, sizeof predicate, where);
  unsigned votes = 0;
  for (unsigned l = 0; l < 32; ++l) votes |= static_cast<unsigned>(all.of<int>(l) != 0) << l;
  return votes;
}
inline unsigned long long atomicCAS(unsigned long long* cell, unsigned long long expected, unsigned long long value) {
  const unsigned long long old = *cell;
  if (old == expected) *cell = value;
  return old;
}
inline unsigned long long atomicMin(unsigned long long* cell, unsigned long long value) {
  const unsigned long long old = *cell;
  if (value < old) *cell = value;
  return old;
}
