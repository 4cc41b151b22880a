// Pre-training examples from TFRecord files as google-research/bert create_pretraining_data.py writes them. Their
// padding is left out on reading.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bert/data/pretraining_examples.h"
#include "bert/data/record_index.h"
#include "io/byte_source.h"
#include "io/spillable.h"
#include "io/tfrecord.h"

namespace bertrand::data {

struct PretrainingRecordsOptions {
  std::int64_t vocab_size = 0;       ///< ids must be below it
  std::int64_t max_positions = 512;  ///< tokens that the model takes at most
  io::OnCorrupt on_corrupt = io::OnCorrupt::stop;
  int threads = 1;                                          ///< for files and their pieces; nothing depends on it
  InputCheck check = InputCheck::index;                     ///< which indexes beside the files are believed
  bool keep_index = true;                                   ///< of each file that was read through
  std::filesystem::path run_directory = {};                 ///< for indexes that cannot be beside a file; may be empty
  io::SpillPlace spill = {};                                ///< for the records of compressed files
  std::uint64_t most_decompressed = io::kMostDecompressed;  ///< bytes of records in one compressed file
};

/// Every epoch has the same examples: all records, in the order of the files. A file that has no index beside it or in
/// the run directory (record_index.h), or one that is not of this file, is read through: every record is checked and
/// its place noted, so that a bad one is known before training begins, and the places are kept as its index.
/// InputCheck::all reads every file through. No index is kept of a compressed file, whose records cannot be read at any
/// place, and of one with corrupt places; one that was made before these is removed, since it may still fit. Memory: 24
/// bytes for each record of a file without an index, and the contents of compressed files, as far as `spill` has them
/// there.
class PretrainingRecords : public PretrainingExamples {
 public:
  /// Throws Error(Failure::input) as file@offset for a record that is corrupt, lacks a feature, or holds values that
  /// cannot be, and if there is no record at all in the files, of which there is at least one.
  PretrainingRecords(const std::vector<std::filesystem::path>& files, const PretrainingRecordsOptions& options);

  /// Does what opening would for these files, which may be none, and keeps nothing but their indexes.
  static void make_indexes(std::vector<std::filesystem::path> files, const PretrainingRecordsOptions& options);

  std::int64_t examples(std::int64_t) override { return static_cast<std::int64_t>(files_.back().end); }
  PretrainingExample example(std::int64_t epoch, std::int64_t number) override;
  std::int64_t tokens(std::int64_t, std::int64_t number) override { return place(number).tokens; }
  std::int64_t masked(std::int64_t, std::int64_t number) override { return place(number).masked; }
  std::int64_t longest() const override { return longest_; }
  std::int64_t most_masked() const { return most_masked_; }  ///< tokens of a record
  std::vector<ExampleSize> largest(std::int64_t count) const override;
  std::size_t bytes() const override;

  std::uint64_t skipped() const { return skipped_; }                      ///< corrupt places left out
  const std::vector<std::string>& warnings() const { return warnings_; }  ///< a line for each file that has some
  const std::string& not_kept() const { return not_kept_; }  ///< why the first index could not be kept, or ""
  /// The CRC-32C of all bytes of a file; none of a compressed one, and of one with corrupt places.
  std::optional<std::uint32_t> crc32c_of_file(std::size_t file) const;

 private:
  struct File {
    std::filesystem::path path;
    std::size_t begin = 0, end = 0;  // the numbers of its records
    std::optional<RecordIndex> index;
    std::vector<RecordPlace> held;  // without an index; offsets are in `unpacked` if the file is compressed
    bool is_compressed = false;
    io::Spillable<char> unpacked;  // of a compressed file: its records end to end
    RecordSums sums;
    std::uint64_t skipped = 0;
    std::string skipped_text, not_kept;

    bool is_indexable() const { return !is_compressed && skipped == 0; }
    std::span<const RecordPlace> places() const { return index ? index->places() : held; }
  };

  explicit PretrainingRecords(const PretrainingRecordsOptions& options) : options_(options) {}
  void open_all(const std::vector<std::filesystem::path>& files);
  File open(const std::filesystem::path& path, int threads) const;
  std::optional<RecordIndex> fitting_index(const std::filesystem::path& path) const;
  void keep_index(File& file) const;
  void remove_indexes(const File& file) const;
  File read_through(const std::filesystem::path& path, int threads) const;
  void add(File file);
  const File& file_of(std::int64_t number) const;
  const RecordPlace& place(std::int64_t number) const;

  PretrainingRecordsOptions options_;
  io::SpillPlace spill_of_each_;  // the file's share of what is held
  std::vector<File> files_;
  std::int64_t longest_ = 0, most_masked_ = 0;
  std::uint64_t skipped_ = 0;
  std::vector<std::string> warnings_;
  std::string not_kept_;
};

/// One record as an example; `place` begins every message.
PretrainingExample parse_pretraining_record(std::string_view record, std::string_view place,
                                            const PretrainingRecordsOptions& options);

}  // namespace bertrand::data
