// A Tensor is a typed, shaped, contiguous window on device memory; copying it copies the handle, not the data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace bertrand {

class Backend;

/// One reference-counted allocation, freed through the Backend that made it.
class Storage {
 public:
  Storage(Backend& backend, std::size_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  Backend& backend() const { return backend_; }
  std::uint64_t writes() const { return writes_; }
  void count_write() { ++writes_; }

 private:
  Backend& backend_;
  std::size_t bytes_;
  std::byte* data_;
  std::uint64_t writes_ = 0;
};

/// Always contiguous and row-major. A default-constructed Tensor is empty: "no value".
class Tensor {
 public:
  Tensor() = default;
  /// Uninitialised memory of backend; throws Error(Failure::memory) if there is none left.
  Tensor(Shape shape, DType dtype, Backend& backend)
      : shape_(shape),
        dtype_(dtype),
        storage_(std::make_shared<Storage>(backend, static_cast<std::size_t>(shape.elements()) * size_of(dtype))) {}

  explicit operator bool() const { return storage_ != nullptr; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Dim elements() const { return storage_ ? shape_.elements() : 0; }  ///< 0 if it is empty
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype_); }
  /// What made its memory. Throws Error(Failure::bug) if it is empty.
  Backend& backend() const {
    if (!storage_) fail_without_value("tensor: x");
    return storage_->backend();
  }
  /// First byte on the device; only kernels of that device may follow it.
  std::byte* data() const { return storage_->data() + offset_ * size_of(dtype_); }

  /// The first element; null for an empty Tensor. T is the dtype's type, or words of its bytes. Only kernels of the
  /// device may follow it.
  template <class T>
  T* as() const {
    return storage_ ? reinterpret_cast<T*>(data()) : nullptr;
  }
  /// The elements of a tensor in the host's memory. Throws Error(Failure::bug) unless T is the dtype's type.
  template <class T>
  std::span<T> span() const {
    check(dtype_of<T>() == dtype_, "span: expected a tensor of {}, got one of {}", name_of(dtype_of<T>()),
          name_of(dtype_));
    return {as<T>(), static_cast<std::size_t>(elements())};
  }

  /// The same elements under another shape.
  Tensor reshape(const Shape& shape) const {
    check(shape.elements() == elements(), "reshape: expected a shape of {} elements as x is {}, got {} of {}",
          elements(), shape_, shape, shape.elements());
    Tensor view = *this;
    view.shape_ = shape;
    return view;
  }
  /// Rows [begin, end) of the first axis, without a copy.
  Tensor rows(Dim begin, Dim end) const {
    check(shape_.rank() > 0 && 0 <= begin && begin <= end && end <= shape_[0],
          "rows: expected 0 <= begin <= end <= the first axis, got [{}, {}) of {}", begin, end, shape_);
    return window(begin * shape_.product(1, shape_.rank()), shape_.with(0, end - begin));
  }
  /// A window of this tensor's elements, counted flat from `first`.
  Tensor window(Dim first, const Shape& shape) const {
    check(first >= 0 && first <= elements() - shape.elements(),
          "window: expected elements within x, got {} elements from element {} of x {}, which has {}", shape.elements(),
          first, shape_, elements());
    Tensor view = *this;
    view.shape_ = shape;
    view.offset_ += static_cast<std::size_t>(first);
    return view;
  }

  /// Throws Error(Failure::bug), which says that `what` ("linear: the weight") is empty and what would give it a value.
  [[noreturn]] static void fail_without_value(const std::string& what);

  /// Call it after a write to memory that was filled before, so that a MemoryWatch notices it.
  void count_write() const { storage_->count_write(); }
  /// Whether no other Tensor holds this memory, so that it may be overwritten unseen.
  bool unique() const { return storage_.use_count() == 1; }
  /// Whether both begin at the same byte of the same allocation.
  bool same_memory(const Tensor& other) const {
    return storage_ && storage_ == other.storage_ && offset_ == other.offset_;
  }

 private:
  Shape shape_;
  DType dtype_ = DType::f32;
  std::shared_ptr<Storage> storage_;
  std::size_t offset_ = 0;  // in elements

  friend class MemoryWatch;
};

/// Notices if the allocation that a tensor lies in is written in place from now on, be it beside the tensor. It does
/// not keep the memory alive.
class MemoryWatch {
 public:
  explicit MemoryWatch(const Tensor& tensor) : storage_(tensor.storage_), writes_(tensor.storage_->writes()) {}
  /// False if the memory is gone: then nothing can read it.
  bool written() const {
    const auto storage = storage_.lock();
    return storage && storage->writes() != writes_;
  }
  /// Whether this is the memory that `tensor` lies in.
  bool watches(const Tensor& tensor) const { return storage_.lock() == tensor.storage_; }

 private:
  std::weak_ptr<const Storage> storage_;
  std::uint64_t writes_;
};

}  // namespace bertrand
