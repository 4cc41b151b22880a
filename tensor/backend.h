// One execution context of a device: its stream, its memory, its share of the cores. Every replica owns one, so nothing
// here is shared and nothing needs a lock. What the device computes is in tensor/kernels.h.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "tensor/kernels.h"

namespace bertrand {

class Profiler;

struct MemoryUse {
  std::size_t in_use = 0, peak = 0;  ///< bytes
};

/// Work of a device that can be asked for again at once. Its backend must outlive it.
class CapturedWork {
 public:
  virtual ~CapturedWork() = default;
  /// Asks for all of it again, with the same memory, and does not wait for it.
  virtual void run() = 0;
};

/// It must outlive every Tensor that it made. One thread at a time calls it.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual Device device() const = 0;
  virtual std::string description() const = 0;  ///< for logs: "cpu, x86-64-v3 kernels, 2 threads"
  /// On a multiple of 64 bytes. Throws Error(Failure::memory), which names current_op.
  virtual std::byte* allocate(std::size_t bytes) = 0;
  virtual void deallocate(std::byte* data, std::size_t bytes) = 0;
  virtual MemoryUse memory() const = 0;
  virtual std::size_t available_memory() const = 0;  ///< bytes that could be had beside those in use
  virtual void synchronize() = 0;                    ///< returns when everything asked so far is done
  /// What `host` points to may go at once. Of memory that was filled before, the caller counts the write.
  virtual void upload(const void* host, const Tensor& out) = 0;
  virtual void download(const Tensor& x, void* host) = 0;  ///< synchronizes
  /// Starts a copy of x, at most 1 KiB, as it is after everything asked so far. The function returned waits for this
  /// copy alone, then puts the bytes at `host`. At most eight such functions are kept at once.
  virtual std::function<void(void* host)> download_later(const Tensor& x) = 0;
  /// Runs `work`, then has it asked for once more and keeps what it asks for, to be run again. It is for work of many
  /// short kernels, for which the host takes longer than the device. `work` reads and writes tensors that are there
  /// before and outlive the captured work, and frees all other memory that it takes. It must ask for the same each
  /// time, and neither upload nor download: else Error(Failure::bug). Throws what `work` throws, Error(Failure::memory)
  /// if there is too little to keep it, and Error(Failure::distributed) if the device cannot. After any of these errors
  /// the backend can still be used. Null, and `work` was not called, if this device would gain nothing.
  virtual std::unique_ptr<CapturedWork> capture(const std::function<void()>& /*work*/) { return nullptr; }
  /// What computes; null in a dry run (tensor/dry_run.h), which computes nothing.
  virtual Kernels* kernels() = 0;
  /// In a dry run: `bytes` says how much scratch memory a kernel of the planned device takes.
  virtual void plan_scratch(const std::function<std::size_t(const Kernels&)>& /*bytes*/) {}

  /// Where ops report their time, or null.
  Profiler* profiler = nullptr;
  /// What is being computed: messages about memory name it.
  const char* current_op = "";
};

}  // namespace bertrand
