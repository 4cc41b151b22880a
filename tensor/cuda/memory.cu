#include "tensor/cuda/memory.h"

#include <algorithm>
#include <cstring>

namespace bertrand::cuda {

DeviceMemory::DeviceMemory(int device, cudaStream_t stream) : stream_(stream) {
  check_cuda(cudaDeviceGetDefaultMemPool(&pool_, device), "memory pool");
  std::uint64_t keep_all = ~std::uint64_t{0};
  check_cuda(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_all), "memory pool");
}

std::size_t Places::take(std::size_t bytes) {
  constexpr std::size_t kAlign = 256;  // as the pool's: the alignment decides which algorithm a product gets
  bytes = (std::max<std::size_t>(bytes, 1) + kAlign - 1) / kAlign * kAlign;
  std::size_t first = 0;
  for (const auto& [begin, end] : taken_) {
    if (first + bytes <= begin) break;
    first = end;
  }
  taken_.emplace(first, first + bytes);
  most_ = std::max(most_, first + bytes);
  return first;
}

std::byte* DeviceMemory::allocate(std::size_t bytes, const char* op) {
  if (!places_) return take(bytes, op);
  std::byte* const from_pool = block_ ? nullptr : take(bytes, op);
  const std::size_t first = places_->take(bytes);
  if (block_ && places_->most() > block_bytes_) {
    places_->give_back(first);
    fail(Failure::memory, "out of memory: {}: captured work has {} bytes, and needed more", op, block_bytes_);
  }
  std::byte* const data = block_ ? block_ + first : from_pool;
  place_of_[data] = first;
  return data;
}

std::byte* DeviceMemory::take(std::size_t bytes, const char* op) {
  void* data = nullptr;
  const auto ask = [&] {
    const cudaError_t error = cudaMallocAsync(&data, std::max<std::size_t>(bytes, 1), stream_);
    if (error == cudaErrorMemoryAllocation) cudaGetLastError();  // which is no reason for later calls to fail
    return error;
  };
  cudaError_t error = ask();
  if (error == cudaErrorMemoryAllocation) {  // what the pool keeps may be in pieces too small, or not free yet
    check_cuda(cudaStreamSynchronize(stream_), "memory");
    check_cuda(cudaMemPoolTrimTo(pool_, 0), "memory pool");
    error = ask();
  }
  if (error == cudaErrorMemoryAllocation) {
    std::size_t free = 0, total = 0;
    check_cuda(cudaMemGetInfo(&free, &total), "memory");
    fail(Failure::memory, "out of memory: {}: needed {} bytes, in use {} bytes of {}", op, bytes, use_.in_use, total);
  }
  check_cuda(error, "allocate");
  use_.in_use += bytes;
  use_.peak = std::max(use_.peak, use_.in_use);
  return static_cast<std::byte*>(data);
}

std::size_t DeviceMemory::available() const {
  std::size_t free = 0, total = 0;
  std::uint64_t reserved = 0, used = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "memory");
  check_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved), "memory pool");
  check_cuda(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used), "memory pool");
  return free + reserved - used;
}

void DeviceMemory::deallocate(std::byte* data, std::size_t bytes) {
  if (const auto place = place_of_.find(data); place != place_of_.end()) {
    places_->give_back(place->second);
    place_of_.erase(place);
    if (block_) return;
  } else if (block_) {
    freed_.emplace_back(data, bytes);
    return;
  }
  use_.in_use -= bytes;
  cudaFreeAsync(data, stream_);  // called by destructors: an error shows in the next call that may throw
}

void DeviceMemory::run_with_places(const std::function<void()>& work) {
  struct Guard {
    DeviceMemory& self;
    ~Guard() {
      self.places_.reset();
      self.place_of_.clear();
      self.block_ = nullptr;
      for (const auto& [data, bytes] : std::exchange(self.freed_, {})) self.deallocate(data, bytes);
    }
  };
  check(!places_, "capture: expected no other capture under way");
  places_.emplace();
  const Guard guard{*this};
  work();
  check(place_of_.empty(), "capture: expected work that frees the memory it takes, got one that keeps {} pieces",
        place_of_.size());
}

std::size_t DeviceMemory::block_for(const std::function<void()>& work) {
  std::size_t bytes = 0;
  run_with_places([&] {
    work();
    bytes = places_->most();
  });
  return bytes;
}

void DeviceMemory::run_within(std::byte* block, std::size_t bytes, const std::function<void()>& work) {
  run_with_places([&] {
    block_ = block;
    block_bytes_ = bytes;
    work();
  });
}

void Staging::upload(const void* host, std::byte* device, std::size_t bytes, cudaStream_t stream) {
  for (std::size_t done = 0; done < bytes; done += kBytes) {
    auto& buffer = buffers_[next_++ % buffers_.size()];
    buffer.copied.wait();
    const std::size_t part = std::min(kBytes, bytes - done);
    std::memcpy(buffer.memory.data(), static_cast<const std::byte*>(host) + done, part);
    check_cuda(cudaMemcpyAsync(device + done, buffer.memory.data(), part, cudaMemcpyHostToDevice, stream), "upload");
    buffer.copied.record(stream);
  }
}

Landing::Landing() {
  for (auto& buffer : buffers_) buffer = std::make_shared<Buffer>();
}

std::function<void(void* host)> Landing::download(const std::byte* device, std::size_t bytes, cudaStream_t stream) {
  check(bytes <= kBytes, "download: expected at most {} bytes, got {}", kBytes, bytes);
  const auto free =
      std::find_if(buffers_.begin(), buffers_.end(), [](const auto& buffer) { return buffer.use_count() == 1; });
  check(free != buffers_.end(), "download: expected at most {} copies that are kept, got one more", buffers_.size());
  const std::shared_ptr<Buffer> buffer = *free;
  check_cuda(cudaMemcpyAsync(buffer->memory.data(), device, bytes, cudaMemcpyDeviceToHost, stream), "download");
  buffer->copied.record(stream);
  return [buffer, bytes](void* host) {
    buffer->copied.wait();
    std::memcpy(host, buffer->memory.data(), bytes);
  };
}

}  // namespace bertrand::cuda
