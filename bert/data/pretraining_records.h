// Pre-training examples from TFRecord files as google-research/bert create_pretraining_data.py writes them. Their
// padding is left out on reading.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "bert/data/pretraining_examples.h"
#include "bert/data/tfrecord.h"

namespace bertrand::data {

struct PretrainingRecordsOptions {
  std::int64_t vocab_size = 0;       ///< ids must be below it
  std::int64_t max_positions = 512;  ///< tokens that the model takes at most
  OnCorrupt on_corrupt = OnCorrupt::stop;
};

/// Every epoch has the same examples: all records, in the order of the files.
class PretrainingRecords : public PretrainingExamples {
 public:
  /// Reads all files. Throws Error(Failure::input) as file@offset for a record that is corrupt, lacks a feature, or
  /// holds values that cannot be, and where there is no record at all.
  PretrainingRecords(const std::vector<std::filesystem::path>& files, const PretrainingRecordsOptions& options);

  std::int64_t examples(std::int64_t) override { return static_cast<std::int64_t>(labels_.size()); }
  PretrainingExample example(std::int64_t epoch, std::int64_t number) override;
  std::int64_t tokens(std::int64_t, std::int64_t number) override { return count(first_token_, number); }
  std::int64_t masked(std::int64_t, std::int64_t number) override { return count(first_masked_, number); }
  std::int64_t longest() const override { return longest_; }
  std::size_t bytes() const override;

  std::uint64_t skipped() const { return skipped_; }                   ///< corrupt places left out
  const std::string& first_skipped() const { return first_skipped_; }  ///< the first of them, as an error would say it

 private:
  void add(const PretrainingExample& example);
  static std::int64_t count(const std::vector<std::uint64_t>& first, std::int64_t number) {
    const auto i = static_cast<std::size_t>(number);
    return static_cast<std::int64_t>(first[i + 1] - first[i]);
  }

  // All examples end to end; example i owns [first[i], first[i + 1]).
  std::vector<std::uint64_t> first_token_{0}, first_masked_{0};
  std::vector<std::int32_t> token_ids_, masked_ids_;
  std::vector<std::uint8_t> token_types_;
  std::vector<std::uint16_t> masked_positions_;
  std::vector<std::uint8_t> labels_;
  std::int64_t longest_ = 0;
  std::uint64_t skipped_ = 0;
  std::string first_skipped_;
};

/// One record as an example; `place` begins every message.
PretrainingExample parse_pretraining_record(std::string_view record, std::string_view place,
                                            const PretrainingRecordsOptions& options);

}  // namespace bertrand::data
