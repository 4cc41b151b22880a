// Encoded examples on the disk, mapped.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "io/unnamed_file.h"

namespace bertrand::tasks {

struct EncodedDataset;

/// The arrays of an EncodedDataset, each in a file without a name.
class SpilledRows {
 public:
  /// In `directory`. Every call throws Error(Failure::io).
  SpilledRows(io::Files& files, const std::filesystem::path& directory);

  /// Takes the examples of `rows`, which has none then.
  void append(EncodedDataset& rows);
  /// After the last append: maps the files. What follows may be called by threads together.
  void finish();

  std::span<const std::int32_t> token_ids() const { return array<std::int32_t>(0); }
  std::span<const std::int64_t> offsets() const { return array<std::int64_t>(1); }
  std::span<const std::int32_t> first_lengths() const { return array<std::int32_t>(2); }
  /// Gives back the memory of what was looked at.
  void let_go() const;

 private:
  template <class T>
  std::span<const T> array(std::size_t which) const {
    const std::span<const std::byte> bytes = mapped_[which]->bytes();
    return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
  }

  std::array<io::UnnamedFile, 3> files_;
  std::array<std::unique_ptr<const io::MappedFile>, 3> mapped_;
  std::int64_t tokens_ = 0;
};

}  // namespace bertrand::tasks
