#include "bert/data/record_check.h"

#include <algorithm>
#include <utility>

#include "io/crc32c.h"

namespace bertrand::data {

namespace {

constexpr std::size_t kPieceBytes = 1 << 20;  // a thread that begins takes no time beside checking that

}  // namespace

RecordCheck::Noted RecordCheck::check(const std::vector<Record>& piece, const PretrainingRecordsOptions& options) {
  Noted noted;
  for (const Record& record : piece) {
    const PretrainingExample example = parse_pretraining_record(record.bytes, record.place, options);
    noted.places.push_back({.offset = record.offset,
                            .bytes = static_cast<std::uint32_t>(record.bytes.size()),
                            .tokens = static_cast<std::uint32_t>(example.token_ids.size()),
                            .masked = static_cast<std::uint32_t>(example.masked_ids.size()),
                            .crc32c = io::crc32c(record.bytes)});
    noted.sums.longest = std::max(noted.sums.longest, noted.places.back().tokens);
    noted.sums.most_masked = std::max(noted.sums.most_masked, noted.places.back().masked);
    for (const auto* ids : {&example.token_ids, &example.masked_ids})
      for (const std::int32_t id : *ids) noted.sums.largest_id = std::max(noted.sums.largest_id, id);
  }
  return noted;
}

void RecordCheck::add(std::string record, std::string place, std::uint64_t offset) {
  piece_bytes_ += sizeof(Record) + record.size() + place.size();
  piece_.push_back({.bytes = std::move(record), .place = std::move(place), .offset = offset});
  if (piece_bytes_ < kPieceBytes) return;
  hand_over();
  if (under_way_.size() == threads_) take_first();
}

void RecordCheck::finish() {
  hand_over();
  while (!under_way_.empty()) take_first();
}

void RecordCheck::hand_over() {
  piece_bytes_ = 0;
  under_way_.push_back(
      std::async(std::launch::async, [this, piece = std::exchange(piece_, {})] { return check(piece, options_); }));
}

void RecordCheck::take_first() {
  const Noted piece = under_way_.front().get();
  under_way_.pop_front();
  noted_.places.insert(noted_.places.end(), piece.places.begin(), piece.places.end());
  noted_.sums.longest = std::max(noted_.sums.longest, piece.sums.longest);
  noted_.sums.most_masked = std::max(noted_.sums.most_masked, piece.sums.most_masked);
  noted_.sums.largest_id = std::max(noted_.sums.largest_id, piece.sums.largest_id);
}

}  // namespace bertrand::data
