// Small files of pre-training records, and a way to damage them.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "bert/data/pretraining_records.h"
#include "support/gzip.h"
#include "support/program.h"
#include "support/tf_example.h"

namespace support {

constexpr std::size_t kRecordsPerFile = 40;

/// A record of Google's form that can be told from all others by its first token.
inline std::string record(std::int64_t number) {
  const auto tokens = static_cast<std::size_t>(3 + number % 5);
  std::vector<std::int64_t> ids(8, 0), mask(8, 0), types(8, 0);
  for (std::size_t i = 0; i < tokens; ++i) ids[i] = number + static_cast<std::int64_t>(i), mask[i] = 1;
  return serialize_example({{"input_ids", ids},
                            {"input_mask", mask},
                            {"segment_ids", types},
                            {"masked_lm_positions", std::vector<std::int64_t>{2, 0}},
                            {"masked_lm_ids", std::vector<std::int64_t>{number, 0}},
                            {"masked_lm_weights", std::vector<float>{1, 0}},
                            {"next_sentence_labels", std::vector<std::int64_t>{number % 2}}});
}

/// Three files of records 0 … 119; the second is compressed.
class ThreeFiles {
 public:
  ThreeFiles() {
    for (int file = 0; file < 3; ++file) {
      std::string framed;
      for (std::size_t i = 0; i < kRecordsPerFile; ++i)
        bertrand::io::append_record(framed, record(std::int64_t{file} * 40 + i));
      files_.push_back(directory_ / std::to_string(file));
      write_text(files_.back(), file == 1 ? gzipped(framed) : framed);
    }
  }
  const std::vector<std::filesystem::path>& files() const { return files_; }
  bertrand::data::PretrainingRecords open(bertrand::io::OnCorrupt on_corrupt = bertrand::io::OnCorrupt::stop,
                                          int threads = 2) const {
    return {files_, {.vocab_size = 200, .on_corrupt = on_corrupt, .threads = threads}};
  }
  void flip(std::size_t file, std::size_t byte) const {
    std::string bytes = read_text(files_[file]);
    bytes[byte] = static_cast<char>(bytes[byte] ^ 1);
    write_text(files_[file], bytes);
  }

 private:
  TemporaryDirectory directory_;
  std::vector<std::filesystem::path> files_;
};

}  // namespace support
