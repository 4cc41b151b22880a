// Pre-training records checked on several threads.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bert/data/pretraining_records.h"

namespace bertrand::data {

/// A record as it was read.
struct UncheckedRecord {
  std::string bytes;
  std::string place;         ///< for messages
  std::uint64_t offset = 0;  ///< to note
};

/// What is noted of records, in their order.
struct CheckedRecords {
  std::vector<RecordPlace> places;
  RecordSums sums;  ///< but the file's
};

/// Parses each record of next() on `threads` threads, 1 or more, a piece of some at a time. Throws the first in order
/// of what next() and parse_pretraining_record() throw.
CheckedRecords check_records(const std::function<std::optional<UncheckedRecord>()>& next,
                             const PretrainingRecordsOptions& options, int threads);

}  // namespace bertrand::data
