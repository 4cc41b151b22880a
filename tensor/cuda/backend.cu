// The door of the module, and what needs no kernel.
#include <fmt/format.h>

#include <cstdlib>

#include "tensor/cuda/cuda_backend.h"
#include "tensor/cuda/products.h"
#include "tensor/cuda/update_plan.h"

namespace bertrand::cuda {
namespace {

/// The GPUs there are; says in one line why there are none.
int count_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  int driver = 0;
  if (error == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0)
    fail(Failure::usage, "--device cuda: this machine has no NVIDIA driver");
  if (error != cudaSuccess) fail(Failure::usage, "--device cuda: {}", cudaGetErrorString(error));
  return count;
}

/// Before the first call of CUDA. By default a kernel's code is loaded when it is launched first, which may wait until
/// the device's queue is empty: after a kernel of NCCL that waits for another GPU, whose thread may wait for the same
/// lock of the process (CUDA C++ Programming Guide, "Lazy Loading"). This was never run on two GPUs.
/// CUDA_DEVICE_MAX_CONNECTIONS is left alone: a replica has two streams, and the default is eight queues.
void load_kernels_at_once() { setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0); }

/// Asked whether the build has kernels for a GPU.
__global__ void nothing_kernel() {}

/// Makes it the calling thread's GPU.
cudaError_t select_device(int index) {
  thread_local int current = -1;
  if (current == index) return cudaSuccess;
  const cudaError_t error = cudaSetDevice(index);
  if (error == cudaSuccess) current = index;
  return error;
}

int use_device(int index) {
  check_cuda(select_device(index), "device");
  return index;
}

/// Refuses a GPU that this build cannot work with, before anything is made on it: that may fail without a word of
/// why.
std::string describe(const Device& device) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device.index), "device");
  if (properties.major < 8)
    fail(Failure::usage, "--device {}: expected a GPU of compute capability 8.0 or newer, {} has {}.{}", device.name(),
         properties.name, properties.major, properties.minor);
  cudaFuncAttributes attributes{};
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, nothing_kernel); error != cudaSuccess) {
    cudaGetLastError();
    fail(Failure::usage,
         "--device {}: expected a GPU that this build has kernels for, {} has {}.{} ({}); hint: "
         "-DCMAKE_CUDA_ARCHITECTURES={}{}",
         device.name(), properties.name, properties.major, properties.minor, cudaGetErrorString(error),
         properties.major, properties.minor);
  }
  return fmt::format("{}, {}, {:.0f} GB", device.name(), properties.name,
                     static_cast<double>(properties.totalGlobalMem) / 1e9);
}

}  // namespace

CudaBackend::CudaBackend(const CudaOptions& options)
    : index_(use_device(options.index)),
      tf32_(options.tf32),
      description_(describe(device())),
      memory_(std::make_unique<DeviceMemory>(index_, stream_.get())),
      products_(std::make_unique<Products>(*this, options.measured_products)),
      update_plan_(std::make_unique<UpdatePlan>()) {
  void* fault = nullptr;  // beside the memory that is counted
  check_cuda(cudaMallocAsync(&fault, sizeof(IndexFault), stream()), "allocate");
  check_cuda(cudaMemsetAsync(fault, 0, sizeof(IndexFault), stream()), "fill");
  fault_ = static_cast<IndexFault*>(fault);
}

CudaBackend::~CudaBackend() {
  select();
  cudaFreeAsync(fault_, stream_.get());
  cudaStreamSynchronize(stream_.get());
}

void CudaBackend::select() const { select_device(index_); }

cudaStream_t CudaBackend::stream() {
  use_device(index_);
  return stream_.get();
}

cudaStream_t CudaBackend::stream_for(const char* what) {
  check(!memory_->is_within(), "capture: expected work that the device does alone, got {}", what);
  return stream();
}

std::byte* CudaBackend::allocate(std::size_t bytes) {
  use_device(index_);
  return memory_->allocate(bytes, current_op);
}
std::size_t CudaBackend::available_memory() const {
  use_device(index_);
  return memory_->available();
}
void CudaBackend::deallocate(std::byte* data, std::size_t bytes) {
  select();
  memory_->deallocate(data, bytes);
}
void CudaBackend::synchronize() { check_cuda(cudaStreamSynchronize(stream_for("a wait")), "synchronize"); }
void CudaBackend::upload(const void* host, const Tensor& out) {
  staging_.upload(host, out.data(), out.bytes(), stream_for("an upload"));
}
void CudaBackend::download(const Tensor& x, void* host) {
  stream_for("a download");
  IndexFault fault{};
  check_cuda(cudaMemcpyAsync(host, x.data(), x.bytes(), cudaMemcpyDeviceToHost, stream()), "download");
  check_cuda(cudaMemcpyAsync(&fault, fault_, sizeof fault, cudaMemcpyDeviceToHost, stream()), "download");
  synchronize();
  refuse_reported(fault);
}

std::function<void(void* host)> CudaBackend::download_later(const Tensor& x) {
  const auto reported =
      landing_.download(reinterpret_cast<const std::byte*>(fault_), sizeof(IndexFault), stream_for("a download"));
  return [this, reported, values = landing_.download(x.data(), x.bytes(), stream())](void* host) {
    IndexFault fault{};
    reported(&fault);
    values(host);
    refuse_reported(fault);
  };
}

void CudaBackend::refuse_reported(const IndexFault& fault) {
  if (fault.kind == 0) return;
  check_cuda(cudaMemsetAsync(fault_, 0, sizeof fault, stream()), "fill");
  refuse(*reinterpret_cast<const IndexKind*>(static_cast<std::uintptr_t>(fault.kind)), fault.bad);
}

DropoutArguments CudaBackend::arguments(const Dropout& dropout) const {
  if (!dropout) return {};
  return {dropout.threshold, philox_keys(dropout.key), dropout.row_keys.as<std::int64_t>(), dropout.scale()};
}

}  // namespace bertrand::cuda

/// The functions that loaders look up.
extern "C" __attribute__((visibility("default"))) bertrand::Backend* bertrand_open_cuda(
    const bertrand::CudaOptions& options) {
  using namespace bertrand;
  if (options.beside_others) cuda::load_kernels_at_once();
  const int count = cuda::count_devices(), index = options.index;
  if (index >= count)
    fail(Failure::usage, "--device cuda:{}: there {} {} GPU{}, numbered from 0", index, count == 1 ? "is" : "are",
         count, count == 1 ? "" : "s");
  return new cuda::CudaBackend(options);
}

/// The stream of one of this module's backends, for a library that works beside it.
extern "C" __attribute__((visibility("default"))) cudaStream_t bertrand_cuda_stream(bertrand::Backend& backend) {
  return static_cast<bertrand::cuda::CudaBackend&>(backend).stream();
}
