// Pre-training records checked on several threads.
#pragma once
#include <deque>
#include <future>

#include "bert/data/pretraining_records.h"

namespace bertrand::data {

/// Parses each record that it is given, on threads of its own, a piece of some at a time. What it notes of them is in
/// their order, whatever thread was first. (io::in_order() fetches its items; these come from a reader, one by one.)
class RecordCheck {
 public:
  /// `options` are referred to. `threads` is 1 or more.
  RecordCheck(const PretrainingRecordsOptions& options, std::size_t threads) : options_(options), threads_(threads) {}

  /// A record, how messages name it, and the offset to note. Throws what parse_pretraining_record() threw for one that
  /// was added before: the first such one.
  void add(std::string record, std::string place, std::uint64_t offset);
  /// Checks what is left. Throws as add() does.
  void finish();

  /// Of all records, after finish().
  std::vector<RecordPlace>& places() { return noted_.places; }
  const RecordSums& sums() const { return noted_.sums; }

 private:
  struct Record {
    std::string bytes, place;
    std::uint64_t offset = 0;
  };
  struct Noted {
    std::vector<RecordPlace> places;
    RecordSums sums;  // but the file's
  };

  static Noted check(const std::vector<Record>& piece, const PretrainingRecordsOptions& options);
  void hand_over();
  void take_first();

  const PretrainingRecordsOptions& options_;
  const std::size_t threads_;
  std::vector<Record> piece_;
  std::size_t piece_bytes_ = 0;
  std::deque<std::future<Noted>> under_way_;
  Noted noted_;
};

}  // namespace bertrand::data
