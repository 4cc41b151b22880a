// Arrays that may become larger than memory: held up to a bound, and beyond it mapped from a file without a name.
#pragma once
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "io/error.h"
#include "io/unnamed_file.h"

namespace bertrand::io {

/// Where arrays go that are more than memory should hold.
struct SpillPlace {
  std::filesystem::path directory = {};            ///< if it is empty or not there, everything is held in memory
  std::size_t held_bytes = std::size_t{64} << 20;  ///< of arrays that go there together
  Files* files = &Files::system();

  /// Whether arrays of so many bytes in memory are to go to the disk, where a part of them may be already.
  bool is_due(std::size_t bytes, bool has_file) const;
};

/// Bytes in a file without a name. Every call throws Error(Failure::io).
class SpillFile {
 public:
  explicit SpillFile(const SpillPlace& place);
  void append(std::span<const std::byte> bytes) { file_->append(bytes); }
  /// After the last append. What follows may be called by threads together.
  void map() {
    mapped_ = std::make_unique<const MappedFile>(file_->name_to_map());
    file_.reset();  // the mapping needs no descriptor, and there may be many files
  }
  std::span<const std::byte> bytes() const {
    check(mapped_ != nullptr, "spilled array: expected finish() before it is read");
    return mapped_->bytes();
  }
  void let_go() const { mapped_->let_go(); }

 private:
  std::unique_ptr<UnnamedFile> file_;  // until it is mapped
  std::unique_ptr<const MappedFile> mapped_;
};

/// An array that grows at its end. It may be read when it is held in memory, or finished.
template <class T>
class Spillable {
 public:
  Spillable() = default;
  Spillable(std::initializer_list<T> values) : held_(values) {}

  void push_back(const T& value) { held_.push_back(value); }
  template <class Range>
  void append(const Range& values) {
    held_.insert(held_.end(), std::begin(values), std::end(values));
  }
  std::int64_t size() const { return in_file_ + std::ssize(held_); }
  std::size_t held_bytes() const { return held_.capacity() * sizeof(T); }  ///< in memory
  bool is_spilled() const { return file_ != nullptr; }
  std::size_t unspilled_bytes() const { return held_.size() * sizeof(T); }

  /// Takes what is in memory to the disk. Throws Error(Failure::io).
  void spill(const SpillPlace& place) {
    if (!file_) file_ = std::make_unique<SpillFile>(place);
    file_->append(std::as_bytes(std::span(held_)));
    in_file_ += std::ssize(held_);
    std::vector<T>().swap(held_);  // clear() would keep the memory
  }
  /// The same if it is more than `place` says.
  void spill_if_due(const SpillPlace& place) {
    if (place.is_due(unspilled_bytes(), is_spilled())) spill(place);
  }
  /// After the last element.
  void finish(const SpillPlace& place) {
    if (!file_) return;
    spill(place);
    file_->map();
  }

  std::span<const T> all() const {
    if (!file_) return held_;
    const std::span<const std::byte> bytes = file_->bytes();
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  /// Gives back the memory of what was looked at if it can be looked at again.
  void let_go() const {
    if (file_) file_->let_go();  // for memory alone
  }

 private:
  std::vector<T> held_;
  std::unique_ptr<SpillFile> file_;
  std::int64_t in_file_ = 0;
};

}  // namespace bertrand::io
