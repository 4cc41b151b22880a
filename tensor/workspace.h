// Memory of a device that a kernel works in.
#pragma once
#include <algorithm>

#include "tensor/backend.h"

namespace bertrand {

/// At least one byte, until this is destroyed. On a GPU the memory is used again only after the kernels that were
/// launched before: its pool follows the order of the stream.
class Workspace {
 public:
  Workspace(Backend& backend, std::size_t bytes)
      : backend_(backend), bytes_(std::max<std::size_t>(bytes, 1)), data_(backend.allocate(bytes_)) {}
  ~Workspace() { backend_.deallocate(data_, bytes_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::size_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  Backend& backend_;
  std::size_t bytes_;
  std::byte* data_;
};

}  // namespace bertrand
