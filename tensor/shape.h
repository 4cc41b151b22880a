// The extent of a tensor: up to six dimensions, row-major.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "io/error.h"

namespace bertrand {

using Dim = std::int64_t;

/// Elements that kernels take at once: a whole vector of f32. Windows of flat tensors begin at its multiples.
inline constexpr Dim kVectorElements = 16;

/// Dimensions of a contiguous tensor, stored inline, whose product is below 2^59, so that bytes can be counted; a 0
/// among them counts as 1 there. Axes may be counted from the end: shape[-1] is the last.
class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<Dim> dims) : Shape(std::span<const Dim>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const Dim> dims) {
    check(dims.size() <= kMaxRank, "shape: expected at most {} dimensions, got {}", kMaxRank, dims.size());
    for (const Dim d : dims) {
      check(d >= 0, "shape: expected dimensions of 0 or more, got {}", d);
      dims_[static_cast<std::size_t>(rank_++)] = d;
    }
    check_product();
  }

  int rank() const { return rank_; }
  Dim operator[](int axis) const { return dims_[static_cast<std::size_t>(resolve(axis))]; }
  Dim elements() const { return product(0, rank_); }
  /// Everything but the last axis, flattened: a tensor seen as [rows, last].
  Dim rows() const { return rank_ == 0 ? 1 : product(0, rank_ - 1); }
  Dim columns() const { return rank_ == 0 ? 1 : dims_[static_cast<std::size_t>(rank_ - 1)]; }
  /// Product of the dimensions in [begin, end).
  Dim product(int begin, int end) const {
    Dim n = 1;
    for (int i = begin; i < end; ++i) n *= dims_[static_cast<std::size_t>(i)];
    return n;
  }
  /// This shape with one dimension replaced.
  Shape with(int axis, Dim extent) const {
    Shape s = *this;
    s.dims_[static_cast<std::size_t>(resolve(axis))] = extent;
    s.check_product();
    return s;
  }
  std::span<const Dim> dims() const { return {dims_.data(), static_cast<std::size_t>(rank_)}; }
  bool operator==(const Shape& other) const { return rank_ == other.rank_ && dims_ == other.dims_; }

  /// The axis counted from the front; throws if there is no such axis.
  int resolve(int axis) const {
    const int i = axis < 0 ? axis + rank_ : axis;
    check(i >= 0 && i < rank_, "shape: expected an axis from {} to {} of {} dimensions, got {}", -rank_, rank_ - 1,
          rank_, axis);
    return i;
  }

 private:
  void check_product() const {
    Dim n = 1;
    for (const Dim d : dims())
      if (__builtin_mul_overflow(n, std::max<Dim>(d, 1), &n) || n >= Dim{1} << 59) refuse_product();
  }
  [[noreturn]] void refuse_product() const;

  std::array<Dim, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace bertrand

/// "[2, 3]". Not a template: format_to() here would compile all of fmt again in each file that includes this.
template <>
struct fmt::formatter<bertrand::Shape> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  format_context::iterator format(const bertrand::Shape& shape, format_context& context) const;
};
