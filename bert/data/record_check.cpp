#include "bert/data/record_check.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "io/crc32c.h"
#include "io/in_order.h"

namespace bertrand::data {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;  // a thread that begins takes no time beside checking that

struct UncheckedPiece {
  std::vector<UncheckedRecord> records;
  std::exception_ptr failure;  // to read the next one: a record before it may be the first that is wrong
};

CheckedRecords check(const UncheckedPiece& piece, const PretrainingRecordsOptions& options) {
  CheckedRecords checked;
  for (const UncheckedRecord& record : piece.records) {
    const PretrainingExample example = parse_pretraining_record(record.bytes, record.place, options);
    checked.places.push_back({.offset = record.offset,
                              .bytes = static_cast<std::uint32_t>(record.bytes.size()),
                              .tokens = static_cast<std::uint32_t>(example.token_ids.size()),
                              .masked = static_cast<std::uint32_t>(example.masked_ids.size()),
                              .crc32c = io::crc32c(record.bytes)});
    checked.sums.longest = std::max(checked.sums.longest, checked.places.back().tokens);
    checked.sums.most_masked = std::max(checked.sums.most_masked, checked.places.back().masked);
    for (const auto* ids : {&example.token_ids, &example.masked_ids})
      for (const std::int32_t id : *ids) checked.sums.largest_id = std::max(checked.sums.largest_id, id);
  }
  if (piece.failure) std::rethrow_exception(piece.failure);
  return checked;
}

}  // namespace

CheckedRecords check_records(const std::function<std::optional<UncheckedRecord>()>& next,
                             const PretrainingRecordsOptions& options, int threads) {
  bool at_end = false;
  const auto next_piece = [&]() -> std::optional<UncheckedPiece> {
    if (at_end) return {};
    UncheckedPiece piece;
    try {
      for (std::size_t bytes = 0; bytes < kPieceBytes && !at_end;) {
        std::optional<UncheckedRecord> record = next();
        at_end = !record;
        if (at_end) break;
        bytes += sizeof(UncheckedRecord) + record->bytes.size() + record->place.size();
        piece.records.push_back(*std::move(record));
      }
    } catch (...) {
      piece.failure = std::current_exception();
      at_end = true;
    }
    return piece;
  };
  CheckedRecords all;
  io::in_order(
      next_piece, threads, [&](const UncheckedPiece& piece, std::size_t) { return check(piece, options); },
      [&](const CheckedRecords& piece) {
        all.places.insert(all.places.end(), piece.places.begin(), piece.places.end());
        all.sums.longest = std::max(all.sums.longest, piece.sums.longest);
        all.sums.most_masked = std::max(all.sums.most_masked, piece.sums.most_masked);
        all.sums.largest_id = std::max(all.sums.largest_id, piece.sums.largest_id);
      });
  return all;
}

}  // namespace bertrand::data
