// Pre-training examples from TFRecord files as google-research/bert create_pretraining_data.py writes them. Their
// padding is left out on reading.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bert/data/pretraining_examples.h"
#include "io/byte_source.h"
#include "io/tfrecord.h"

namespace bertrand::data {

struct PretrainingRecordsOptions {
  std::int64_t vocab_size = 0;       ///< ids must be below it
  std::int64_t max_positions = 512;  ///< tokens that the model takes at most
  io::OnCorrupt on_corrupt = io::OnCorrupt::stop;
  int threads = 1;                                          ///< files checked at a time
  std::uint64_t most_decompressed = io::kMostDecompressed;  ///< bytes of records in one gzip file
};

/// Every epoch has the same examples: all records, in the order of the files. The files are read twice: when they are
/// opened every record is checked and its place noted, so that a bad one is known before training begins; later each is
/// read where it is wanted. Memory: 24 bytes a record, and the contents of compressed files, which cannot be read at
/// any place.
class PretrainingRecords : public PretrainingExamples {
 public:
  /// Checks all files. Throws Error(Failure::input) as file@offset for a record that is corrupt, lacks a feature, or
  /// holds values that cannot be, and if there is no record at all.
  PretrainingRecords(const std::vector<std::filesystem::path>& files, const PretrainingRecordsOptions& options);

  std::int64_t examples(std::int64_t) override { return static_cast<std::int64_t>(places_.size()); }
  PretrainingExample example(std::int64_t epoch, std::int64_t number) override;
  std::int64_t tokens(std::int64_t, std::int64_t number) override { return place(number).tokens; }
  std::int64_t masked(std::int64_t, std::int64_t number) override { return place(number).masked; }
  std::int64_t longest() const override { return longest_; }
  std::vector<ExampleSize> largest(std::int64_t count) const override;
  std::size_t bytes() const override;

  std::uint64_t skipped() const { return skipped_; }                   ///< corrupt places left out
  const std::string& first_skipped() const { return first_skipped_; }  ///< the first of them, as an error would say it

 private:
  struct Place {
    std::uint64_t offset;  // in the file, or in `unpacked`
    std::uint32_t bytes, tokens, masked;
  };
  struct File {
    std::filesystem::path path;
    std::size_t end = 0;  // the number of the record after its last one
    bool is_compressed = false;
    std::string unpacked;  // the records of a compressed file, end to end
  };
  struct Checked;

  Checked check_file(const std::filesystem::path& path) const;
  void add(Checked checked);
  const Place& place(std::int64_t number) const { return places_[static_cast<std::size_t>(number)]; }

  PretrainingRecordsOptions options_;
  std::vector<File> files_;
  std::vector<Place> places_;
  std::int64_t longest_ = 0;
  std::uint64_t skipped_ = 0;
  std::string first_skipped_;
};

/// One record as an example; `place` begins every message.
PretrainingExample parse_pretraining_record(std::string_view record, std::string_view place,
                                            const PretrainingRecordsOptions& options);

}  // namespace bertrand::data
