// The contents of compressed files of records.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "io/unnamed_file.h"

namespace bertrand::data {

/// Records end to end: held in memory, or in a file without a name if they are many.
class UnpackedRecords {
 public:
  UnpackedRecords() = default;
  /// The file is made beside `place` as soon as more than `most_held` bytes are held; never if `place` is empty. Every
  /// call throws Error(Failure::io).
  UnpackedRecords(std::filesystem::path place, std::size_t most_held)
      : place_(std::move(place)), most_held_(most_held) {}

  void append(std::string_view record);
  /// After the last append.
  void finish();
  /// What begins at this byte of all that were appended. Threads may call this together.
  std::string_view at(std::uint64_t offset, std::size_t bytes) const;
  /// Gives back the memory of what was looked at if it can be looked at again.
  void let_go() const;

  std::uint64_t size() const { return size_; }                 ///< bytes
  std::size_t held_bytes() const { return held_.capacity(); }  ///< in memory

 private:
  void spill();

  std::filesystem::path place_;
  std::size_t most_held_ = 0;
  std::uint64_t size_ = 0;
  std::string held_;
  std::unique_ptr<io::UnnamedFile> file_;
  std::unique_ptr<const io::MappedFile> mapped_;
};

}  // namespace bertrand::data
