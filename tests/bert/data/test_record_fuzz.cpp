// Damaged records of every kind: none may crash a reader, take much memory, or go unnamed.
#include <doctest/doctest.h>

#include <random>

#include "bert/data/pretraining_records.h"
#include "io/error.h"
#include "io/tfrecord.h"
#include "support/program.h"
#include "support/tf_example.h"

using namespace bertrand::data;
using bertrand::Error;
using bertrand::Failure;
namespace fs = std::filesystem;

namespace {

using Dice = std::mt19937_64;

std::size_t below(Dice& dice, std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(dice); }

/// A number that a length or count field may be abused with.
std::uint64_t odd_number(Dice& dice) {
  const std::uint64_t near_a_power = (std::uint64_t{1} << below(dice, 64)) + below(dice, 3) - 1;
  return below(dice, 4) == 0 ? dice() : near_a_power;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

/// Flips a bit, overwrites, cuts, inserts random bytes or a huge length, or doubles a part.
std::string damaged(std::string bytes, Dice& dice) {
  for (std::size_t times = 1 + below(dice, 4); times > 0; --times) {
    const std::size_t at = below(dice, bytes.size() + 1);
    const std::size_t size = std::min(below(dice, 9), bytes.size() - at);
    switch (below(dice, 6)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(dice, 8)));
        break;
      case 1:
        for (std::size_t i = at; i < at + size; ++i) bytes[i] = static_cast<char>(dice());
        break;
      case 2: bytes.resize(at); break;
      case 3: bytes.replace(at, size, varint(odd_number(dice))); break;
      case 4: bytes.insert(at, bytes.substr(at, 40)); break;
      default: bytes.erase(at, size);
    }
  }
  return bytes;
}

std::string example() {
  return support::serialize_example({{"input_ids", std::vector<std::int64_t>{2, 5, 4, 3, 7, 3, 0, 0}},
                                     {"input_mask", std::vector<std::int64_t>{1, 1, 1, 1, 1, 1, 0, 0}},
                                     {"segment_ids", std::vector<std::int64_t>{0, 0, 0, 0, 1, 1, 0, 0}},
                                     {"masked_lm_positions", std::vector<std::int64_t>{2, 0}},
                                     {"masked_lm_ids", std::vector<std::int64_t>{8, -1}},
                                     {"masked_lm_weights", std::vector<float>{1, 0}},
                                     {"next_sentence_labels", std::vector<std::int64_t>{1}},
                                     {"text", std::vector<std::string>{"some", "words"}}});
}

/// Runs `read`; what it throws must be bad input, in one line that begins with `place`.
template <class Read>
bool survives(const std::string& place, Read read) {
  try {
    read();
    return true;
  } catch (const Error& error) {
    const std::string message = error.what();
    const bool is_named = error.failure() == Failure::input && message.starts_with(place);
    const bool is_one_line = message.find('\n') == std::string::npos && message.size() < 2000;
    CHECK_MESSAGE((is_named && is_one_line), message);
    return false;
  }
}

}  // namespace

TEST_CASE("a damaged example is read or named, whatever the damage") {
  Dice dice(1);
  const std::string good = example();
  std::size_t read = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string bad = damaged(good, dice);
    std::size_t values = 0;
    read += survives("f@7: ", [&] {
      for (const auto& [name, feature] : parse_example(bad, "f@7")) {
        if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(&feature)) values += numbers->size();
        if (const auto* floats = std::get_if<std::vector<float>>(&feature)) values += floats->size();
      }
    });
    REQUIRE(values <= bad.size());  // nothing is made of a count alone
  }
  CHECK(read > 1000);
  CHECK(read < 19000);
}

TEST_CASE("a damaged example is never an example that cannot be trained on") {
  Dice dice(2);
  const std::string good = example();
  for (int round = 0; round < 20000; ++round) {
    const std::string bad = damaged(good, dice);
    survives("f@7: ", [&] {
      const PretrainingExample e = parse_pretraining_record(bad, "f@7", {.vocab_size = 10, .max_positions = 8});
      REQUIRE(e.token_ids.size() <= 8);
      REQUIRE(e.token_types.size() == e.token_ids.size());
      REQUIRE(e.masked_ids.size() == e.masked_positions.size());
      for (const std::int32_t id : e.token_ids) REQUIRE((id >= 0 && id < 10));
      for (const std::int32_t id : e.masked_ids) REQUIRE((id >= 0 && id < 10));
      for (const std::int32_t at : e.masked_positions) REQUIRE(at < static_cast<std::int32_t>(e.token_ids.size()));
    });
  }
}

TEST_CASE("a damaged file of records is read up to the damage, which is named, and skipping ends as well") {
  Dice dice(3);
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "r";
  std::string good;
  for (const std::string& record : {example(), std::string(), std::string(300, 'x'), example()})
    bertrand::io::append_record(good, record);
  for (int round = 0; round < 1500; ++round) {
    std::string bad = damaged(good, dice);
    if (below(dice, 3) == 0) {  // a length of any size with the right checksum, so that it is believed
      const std::uint64_t length = odd_number(dice);
      std::string framed;
      bertrand::io::append_record(framed, {reinterpret_cast<const char*>(&length), 8});
      // The checksum of an 8-byte record is that of the same bytes as a length.
      bad.insert(0, framed.substr(12, 8) + framed.substr(20, 4));
    }
    support::write_text(file, bad);
    const auto read_all = [&](bertrand::io::OnCorrupt on_corrupt) {
      bertrand::io::RecordReader reader(file, on_corrupt);
      std::size_t bytes = 0;
      for (std::string record; reader.next(record);) bytes += record.size() + 16;
      REQUIRE(bytes <= bad.size());
    };
    survives(file.string() + "@", [&] { read_all(bertrand::io::OnCorrupt::stop); });
    REQUIRE(survives("", [&] { read_all(bertrand::io::OnCorrupt::skip); }));
    survives(file.string(),
             [&] { PretrainingRecords({file}, {.vocab_size = 10, .on_corrupt = bertrand::io::OnCorrupt::skip}); });
  }
}

TEST_CASE("random bytes are no records") {
  Dice dice(4);
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "r";
  for (int round = 0; round < 1000; ++round) {
    std::string bytes(1 + below(dice, 200), '\0');
    for (char& byte : bytes) byte = static_cast<char>(dice());
    if (below(dice, 2) == 0) bytes.insert(0, "\x1F\x8B\x08");  // as gzip begins
    support::write_text(file, bytes);
    std::string record;
    CHECK_FALSE(survives(file.string() + "@0: ", [&] { bertrand::io::RecordReader(file).next(record); }));
    survives("f@7: ", [&] { parse_example(bytes, "f@7"); });
  }
}
