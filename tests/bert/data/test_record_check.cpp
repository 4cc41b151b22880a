#include "bert/data/record_check.h"

#include <doctest/doctest.h>

#include "io/crc32c.h"
#include "io/error.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/tf_example.h"

using namespace bertrand;
using namespace bertrand::data;

namespace {

constexpr std::size_t kRecords = 3000;  // of some 1.1 kB: three pieces and a part of one
constexpr std::int64_t kVocabulary = 5000;

/// Record `number` of Google's form, of 300 tokens or less, with or without what makes it a wrong one.
std::string record(std::size_t number, bool is_wrong = false) {
  const std::size_t tokens = 300 - number % 7;
  std::vector<std::int64_t> ids(300, 0), mask(300, 0), types(300, 0), positions(2, 0), words(2, 0);
  for (std::size_t i = 0; i < tokens; ++i) ids[i] = static_cast<std::int64_t>(1000 + (number + i) % 1000), mask[i] = 1;
  if (is_wrong) ids[1] = kVocabulary;
  words[0] = static_cast<std::int64_t>(number);
  return support::serialize_example({{"input_ids", ids},
                                     {"input_mask", mask},
                                     {"segment_ids", types},
                                     {"masked_lm_positions", positions},
                                     {"masked_lm_ids", words},
                                     {"masked_lm_weights", std::vector<float>{1, number % 2 == 0 ? 0.0f : 1.0f}},
                                     {"next_sentence_labels", std::vector<std::int64_t>{1}}});
}

const PretrainingRecordsOptions kOptions{.vocab_size = kVocabulary};

}  // namespace

TEST_CASE("what is noted of records has their order and does not depend on how many threads check them") {
  for (const int threads : {1, 2, 8}) {
    CAPTURE(threads);
    std::size_t given = 0;
    const auto next = [&]() -> std::optional<UncheckedRecord> {
      const std::size_t i = given++;
      if (i >= kRecords) return {};
      return UncheckedRecord{.bytes = record(i), .place = std::to_string(i), .offset = 10 * i};
    };
    const CheckedRecords checked = check_records(next, kOptions, threads);
    REQUIRE(checked.places.size() == kRecords);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < kRecords; ++i) {
      const RecordPlace& place = checked.places[i];
      const std::string bytes = record(i);
      wrong += place.offset != 10 * i || place.bytes != bytes.size() || place.tokens != 300 - i % 7 ||
               place.masked != 1 + i % 2 || place.crc32c != io::crc32c(bytes);
    }
    CHECK(wrong == 0);
    CHECK(checked.sums.longest == 300);
    CHECK(checked.sums.most_masked == 2);
    CHECK(checked.sums.largest_id == kRecords - 1);
  }
}

TEST_CASE("of records without bytes few are held before the first is refused") {
  int given = 0;
  const auto next = [&]() -> std::optional<UncheckedRecord> {
    if (given == 100'000) return {};
    return UncheckedRecord{.bytes = "", .place = std::to_string(given++)};
  };
  const std::string message = support::refusal(Failure::input, [&] { check_records(next, kOptions, 1); });
  CHECK(message.starts_with("0: "));
  CHECK(given < 40'000);
}

TEST_CASE("of several wrong records the first is named, whatever thread is the first to meet one") {
  const support::TemporaryDirectory directory;
  std::string framed;
  std::vector<std::size_t> begins;
  constexpr std::size_t kFirst = 1200, kSecond = 2800;
  for (std::size_t i = 0; i < kRecords; ++i) {
    begins.push_back(framed.size());
    io::append_record(framed, record(i, i == kFirst || i == kSecond));
  }
  const auto refusal_of = [&](const std::string& bytes, int threads) {
    support::write_text(directory / "f", bytes);
    PretrainingRecordsOptions options = kOptions;
    options.threads = threads;
    return support::refusal(Failure::input, [&] { PretrainingRecords({directory / "f"}, options); });
  };
  const auto with_a_flip_in = [&](std::size_t number) {
    std::string flipped = framed;
    flipped[begins[number] + 20] = static_cast<char>(flipped[begins[number] + 20] ^ 1);
    return flipped;
  };
  const auto at = [&](std::size_t number) { return "f@" + std::to_string(begins[number]) + ": "; };
  for (const int threads : {1, 8}) {
    CAPTURE(threads);
    CHECK(refusal_of(framed, threads).find(at(kFirst) + "input_ids: expected 0 to 4999, got 5000") !=
          std::string::npos);
    CHECK(refusal_of(with_a_flip_in(kFirst + 1), threads).find(at(kFirst) + "input_ids") != std::string::npos);
    CHECK(refusal_of(with_a_flip_in(kFirst - 1), threads).find(at(kFirst - 1) + "record data crc") !=
          std::string::npos);
  }
}
