// Where the records of a TFRecord file lie, kept beside it, so that the next run need not read them through.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "bert/data/input_check.h"
#include "io/files.h"

namespace bertrand::data {

/// One record, checked.
struct RecordPlace {
  std::uint64_t offset = 0;  ///< in the file
  std::uint32_t bytes = 0, tokens = 0, masked = 0;
  std::uint32_t crc32c = 0;  ///< of its bytes, so that another record in its place is noticed when it is read
};

/// What is known of a whole file.
struct RecordSums {
  std::uint64_t file_bytes = 0;
  std::uint32_t file_crc32c = 0;
  std::uint32_t longest = 0, most_masked = 0;  ///< the most tokens and masked tokens of a record
  std::int32_t largest_id = -1;
};

/// .FILE.bertrand.idx, mapped: a header of 64 bytes, then 24 for each record, all little-endian.
class RecordIndex {
 public:
  /// Beside the file; or in a directory, under a name of the file and its place.
  static std::filesystem::path file_of(const std::filesystem::path& records,
                                       const std::filesystem::path& directory = {});

  /// The index of a file, if there is one that is whole and made of this file: of its size, and unless `check` is
  /// InputCheck::none with the checksum of its sample (io/file_checksum.h).
  static std::optional<RecordIndex> open(const std::filesystem::path& records, InputCheck check,
                                         const std::filesystem::path& directory = {});
  /// Puts it there in one step. Throws Error(Failure::io).
  static void write(io::Files& files, const std::filesystem::path& records, std::span<const RecordPlace> places,
                    const RecordSums& sums, const std::filesystem::path& directory = {});

  /// Removes it if there is one. Throws Error(Failure::io).
  static void remove(io::Files& files, const std::filesystem::path& records,
                     const std::filesystem::path& directory = {});

  const RecordSums& sums() const { return sums_; }
  std::span<const RecordPlace> places() const;
  /// Gives back the memory of the places that were looked at.
  void let_go() const { mapped_->let_go(); }

 private:
  std::unique_ptr<const io::MappedFile> mapped_;
  RecordSums sums_;
};

}  // namespace bertrand::data
