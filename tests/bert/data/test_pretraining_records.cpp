#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include "bert/data/three_files.h"
#include "io/crc32c.h"
#include "io/error.h"
#include "support/refusal.h"

using namespace bertrand::data;
using bertrand::Error;
using support::kRecordsPerFile;
using support::read_text;
using support::record;
using support::ThreeFiles;
using support::write_text;
namespace fs = std::filesystem;

TEST_CASE("records of many files are numbered in the order of the files and read one by one") {
  const ThreeFiles three;
  for (const int threads : {1, 2, 7}) {
    PretrainingRecords records = three.open(bertrand::io::OnCorrupt::stop, threads);
    REQUIRE(records.examples(5) == 120);
    CHECK(records.longest() == 7);
    for (const std::int64_t number : {119, 0, 40, 39, 80, 79, 41, 3}) {
      const PretrainingExample example = records.example(0, number);
      CHECK(example.token_ids.front() == number);
      CHECK(example.masked_ids == std::vector<std::int32_t>{static_cast<std::int32_t>(number)});
      CHECK(example.next_sentence_label == number % 2);
      CHECK(records.tokens(0, number) == static_cast<std::int64_t>(example.token_ids.size()));
      CHECK(records.masked(0, number) == 1);
    }
  }
}

TEST_CASE("the memory of records is their places where no index is kept, and the contents of compressed files alone") {
  const ThreeFiles three;
  const PretrainingRecords plain({three.files()[0]}, {.vocab_size = 200, .keep_index = false});
  CHECK(plain.bytes() >= kRecordsPerFile * 24);
  CHECK(plain.bytes() <= 2 * kRecordsPerFile * 24);
  CHECK(PretrainingRecords({three.files()[0]}, {.vocab_size = 200}).bytes() < 24);  // places are in the index
  const PretrainingRecords compressed({three.files()[1]}, {.vocab_size = 200});
  CHECK(compressed.bytes() > kRecordsPerFile * record(41).size());
  CHECK(compressed.bytes() <= 2 * kRecordsPerFile * (record(41).size() + 24));
}

TEST_CASE("a record that has changed since it was checked is named by file and offset") {
  const ThreeFiles three;
  PretrainingRecords records = three.open();
  const auto offset = std::to_string(record(0).size() + 16);
  const std::size_t begin = record(0).size() + 16;
  for (const std::size_t byte : {begin, begin + 9, begin + 24}) {  // in the length, in its checksum, in the data
    three.flip(0, byte);
    CHECK_THROWS_WITH_AS(records.example(0, 1), doctest::Contains(("0@" + offset + ": record: expected").c_str()),
                         Error);
    three.flip(0, byte);
    CHECK(records.example(0, 1).token_ids.front() == 1);
  }
  fs::resize_file(three.files()[2], 100);
  CHECK_THROWS_AS(records.example(0, 119), Error);
  fs::remove(three.files()[0]);
  CHECK_THROWS_WITH_AS(records.example(0, 1), doctest::Contains("0: open: No such file"), Error);
}

TEST_CASE("a record is refused for each feature that does not fit the others or holds what cannot be") {
  using Ints = std::vector<std::int64_t>;
  using Floats = std::vector<float>;
  const Features good{{"input_ids", Ints{2, 5, 3, 0}},   {"input_mask", Ints{1, 1, 1, 0}},
                      {"segment_ids", Ints{0, 0, 1, 0}}, {"masked_lm_positions", Ints{1, 0}},
                      {"masked_lm_ids", Ints{5, 0}},     {"masked_lm_weights", Floats{1, 0}},
                      {"next_sentence_labels", Ints{1}}};
  const auto refusal = [&](const std::string& name, const Feature& feature) {
    Features features = good;
    features[name] = feature;
    return support::refusal(bertrand::Failure::input, [&] {
      parse_pretraining_record(support::serialize_example(features), "f@7", {.vocab_size = 10});
    });
  };
  CHECK(refusal("input_mask", Ints{1, 1, 1, 0}) == "");
  for (const auto& [name, feature] :
       std::vector<std::pair<std::string, Feature>>{{"input_mask", Ints{2, 1, 1, 0}},
                                                    {"input_mask", Ints{0, 0, 0, 0}},
                                                    {"input_mask", Ints{1, 0, 1, 0}},
                                                    {"input_mask", Ints{1, 1, 1}},
                                                    {"input_mask", Ints{1, 1, 1, 1, 1}},
                                                    {"segment_ids", Ints{0, 0, 2, 0}},
                                                    {"segment_ids", Ints{0, 0, 1}},
                                                    {"masked_lm_positions", Ints{3, 0}},
                                                    {"masked_lm_ids", Ints{10, 0}},
                                                    {"masked_lm_ids", Ints{5}},
                                                    {"masked_lm_weights", Floats{0.5F, 0}},
                                                    {"masked_lm_weights", Floats{1}},
                                                    {"masked_lm_weights", Ints{1, 0}},
                                                    {"next_sentence_labels", Ints{2}},
                                                    {"next_sentence_labels", Ints{}},
                                                    {"next_sentence_labels", Ints{1, 0}}}) {
    const std::string line = refusal(name, feature);
    CHECK_MESSAGE((line.starts_with("f@7: ") && line.find(name) != std::string::npos), line);
  }
}

TEST_CASE("files without any record are refused") {
  const support::TemporaryDirectory directory;
  write_text(directory / "empty", "");
  CHECK_THROWS_WITH_AS(PretrainingRecords({directory / "empty"}, {.vocab_size = 9}),
                       doctest::Contains("records: expected at least one, got none"), Error);
  CHECK(support::refusal(bertrand::Failure::input, [&] {
          PretrainingRecords({directory / "empty"}, {.vocab_size = 9});
        }).ends_with(", got none"));  // and nothing was skipped
}

namespace {

/// All examples, their sizes and the sums, as one text.
std::string all_of(PretrainingRecords& records) {
  std::string text = fmt::format("{} {}", records.examples(0), records.longest());
  for (const ExampleSize& size : records.largest(5)) text += fmt::format(" {}/{}", size.tokens, size.masked);
  for (std::int64_t i = 0; i < records.examples(0); ++i)
    text += fmt::format("\n{} {} {}", fmt::join(records.example(0, i).token_ids, " "), records.tokens(0, i),
                        records.masked(0, i));
  return text;
}

}  // namespace

TEST_CASE("an index gives what reading the records through gives, and is of all files that are not compressed") {
  const ThreeFiles three;
  PretrainingRecords first = three.open();
  CHECK(fs::exists(RecordIndex::file_of(three.files()[0])));
  CHECK(!fs::exists(RecordIndex::file_of(three.files()[1])));
  CHECK(fs::file_size(RecordIndex::file_of(three.files()[2])) == 64 + 24 * kRecordsPerFile);
  PretrainingRecords second = three.open();
  PretrainingRecords without(three.files(), {.vocab_size = 200, .check = InputCheck::all, .keep_index = false});
  CHECK(all_of(first) == all_of(without));
  CHECK(all_of(second) == all_of(without));
  for (std::size_t file = 0; file < 3; ++file) CHECK(second.crc32c_of_file(file) == without.crc32c_of_file(file));
  CHECK(second.crc32c_of_file(0) == bertrand::io::crc32c(read_text(three.files()[0])));
  CHECK(!second.crc32c_of_file(1));
}

TEST_CASE("an index that is damaged anywhere, cut, empty or of another file is made again") {
  const ThreeFiles three;
  const fs::path file = three.files()[0], index = RecordIndex::file_of(file);
  PretrainingRecords records = three.open();
  const std::string expected = all_of(records), good = read_text(index);
  const auto check_made_again = [&](const std::string& bytes) {
    write_text(index, bytes);
    CHECK(!RecordIndex::open(file, InputCheck::index));
    PretrainingRecords again = three.open();
    CHECK(all_of(again) == expected);
    CHECK(read_text(index) == good);
  };
  for (std::size_t byte = 0; byte < good.size(); byte += byte < 64 ? 1 : 29) {
    std::string bytes = good;
    bytes[byte] = static_cast<char>(bytes[byte] ^ 4);
    check_made_again(bytes);
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{63}, std::size_t{64}, good.size() - 24, good.size() - 1})
    check_made_again(good.substr(0, size));
  check_made_again(good + std::string(24, '\0'));
  CHECK(read_text(RecordIndex::file_of(three.files()[2])) != good);
  check_made_again(read_text(RecordIndex::file_of(three.files()[2])));
}

TEST_CASE("an index of a file that has changed since is not believed, and all reads every record though there is one") {
  const ThreeFiles three;
  three.open();
  three.flip(0, 20);  // a small file is its own sample
  CHECK_THROWS_WITH_AS(three.open(), doctest::Contains("0@0: record data crc: expected 0x"), Error);
  const PretrainingRecordsOptions none{.vocab_size = 200, .check = InputCheck::none};
  PretrainingRecords unseen(three.files(), none);
  CHECK_THROWS_WITH_AS(unseen.example(0, 0), doctest::Contains("0@0: record: expected"), Error);
  CHECK_THROWS_WITH_AS(
      PretrainingRecords(three.files(), {.vocab_size = 200, .check = InputCheck::all, .keep_index = false}),
      doctest::Contains("0@0: record data crc"), Error);
  std::string framed;  // another record of that size with good checksums
  for (std::int64_t i = 0; i < 40; ++i) bertrand::io::append_record(framed, record(i == 0 ? 5 : i));
  three.flip(0, 20);
  REQUIRE(framed.size() == read_text(three.files()[0]).size());
  write_text(three.files()[0], framed);
  CHECK_THROWS_WITH_AS(unseen.example(0, 0), doctest::Contains("0@0: record: expected"), Error);
  PretrainingRecords again = three.open();
  CHECK(again.example(0, 0).token_ids.front() == 5);
}

TEST_CASE("an index of records that a smaller model cannot take leads to the first of them") {
  const ThreeFiles three;
  three.open();
  CHECK_THROWS_WITH_AS(PretrainingRecords({three.files()[0]}, {.vocab_size = 20}),
                       doctest::Contains("input_ids: expected 0 to 19, got 20"), Error);
  CHECK_THROWS_WITH_AS(PretrainingRecords({three.files()[0]}, {.vocab_size = 200, .max_positions = 5}),
                       doctest::Contains("expected at most 5 tokens"), Error);
  // The first file has ids up to 45 and records of up to 7 tokens.
  CHECK_THROWS_WITH_AS(PretrainingRecords({three.files()[0]}, {.vocab_size = 45}),
                       doctest::Contains("input_ids: expected 0 to 44, got 45"), Error);
  for (const InputCheck check : {InputCheck::index, InputCheck::all})
    CHECK(PretrainingRecords({three.files()[0]}, {.vocab_size = 46, .max_positions = 7, .check = check}).examples(0) ==
          kRecordsPerFile);
}

TEST_CASE("the largest examples of some records are their largest ones") {
  const ThreeFiles three;  // of each file 8 records have 7 tokens, 8 have 6, …
  const PretrainingRecords records({three.files()[0]}, {.vocab_size = 200});
  std::vector<std::int64_t> tokens;
  for (const ExampleSize& size : records.largest(12)) {
    tokens.push_back(size.tokens);
    CHECK(size.masked == 1);
  }
  CHECK(tokens == std::vector<std::int64_t>{7, 7, 7, 7, 7, 7, 7, 7, 6, 6, 6, 6});
  CHECK(records.largest(1000).size() == kRecordsPerFile);
  CHECK(records.largest(0).empty());
}

TEST_CASE("where no index can be kept the records are held, and it is said why, and corrupt files have none") {
  const ThreeFiles three;
  fs::create_directory(RecordIndex::file_of(three.files()[0]));
  PretrainingRecords records = three.open();
  CHECK(records.not_kept().find("0.bertrand.idx") != std::string::npos);
  CHECK(records.example(0, 7).token_ids.front() == 7);
  CHECK(three.open(bertrand::io::OnCorrupt::skip).not_kept() != "");
  fs::remove(RecordIndex::file_of(three.files()[2]));
  three.flip(2, 20);
  CHECK(three.open(bertrand::io::OnCorrupt::skip).skipped() == 1);
  CHECK(!fs::exists(RecordIndex::file_of(three.files()[2])));
}

TEST_CASE("the index of a file that is given many times is kept without a complaint") {
  const ThreeFiles three;
  for (int turn = 0; turn < 20; ++turn, fs::remove(RecordIndex::file_of(three.files()[0])))
    CHECK(PretrainingRecords(std::vector(16, three.files()[0]), {.vocab_size = 200, .threads = 16}).not_kept() == "");
}

TEST_CASE("where no index can be beside a file the run directory has it, and the next start reads it") {
  const ThreeFiles three;
  fs::create_directory(RecordIndex::file_of(three.files()[0]));  // root may write where it is not allowed
  const support::TemporaryDirectory run, again;
  const PretrainingRecordsOptions options{.vocab_size = 200, .run_directory = run / ""};
  PretrainingRecords({three.files()[2]}, options);
  CHECK(fs::is_empty(run / ""));  // it is beside the file
  fs::remove(RecordIndex::file_of(three.files()[2]));
  fs::create_directory(again / "0");
  fs::rename(three.files()[2], again / "0" / "0");  // the same name in another folder
  fs::create_directory(RecordIndex::file_of(again / "0" / "0"));
  const std::vector<fs::path> files{three.files()[0], again / "0" / "0"};
  PretrainingRecords first(files, options);
  CHECK(first.not_kept() == "");
  CHECK(std::distance(fs::directory_iterator(run / ""), {}) == 2);
  CHECK(first.bytes() < 2 * 24);  // places are in the indexes
  const fs::path index = RecordIndex::file_of(files[0], run / "");
  const auto written = fs::last_write_time(index);
  PretrainingRecords second(files, options);
  CHECK(all_of(second) == all_of(first));
  CHECK(fs::last_write_time(index) == written);
  three.flip(0, 20);
  CHECK_THROWS_WITH_AS(PretrainingRecords(files, options), doctest::Contains("0@0: record data crc: expected 0x"),
                       Error);
}

TEST_CASE("a compressed file that becomes much is held on the disk, and one that becomes too much is refused") {
  const ThreeFiles three;
  const std::vector<fs::path> file{three.files()[1]};
  PretrainingRecords held(file, {.vocab_size = 200});
  const support::TemporaryDirectory run;
  const std::size_t all = kRecordsPerFile * record(41).size(), places = 24 * 2 * kRecordsPerFile;
  CHECK(held.bytes() >= all);
  const auto descriptors = [] { return std::distance(fs::directory_iterator("/proc/self/fd"), {}); };
  const auto before = descriptors();
  for (const std::size_t held_bytes : {std::size_t{0}, all / 3}) {
    PretrainingRecords spilled(file, {.vocab_size = 200, .spill = {run / "", held_bytes}});
    CHECK(descriptors() == before);
    CHECK(all_of(spilled) == all_of(held));
    CHECK(spilled.bytes() <= places);
    CHECK(fs::is_empty(run / ""));
  }
  CHECK(PretrainingRecords(file, {.vocab_size = 200, .spill = {run / "", all + 1}}).bytes() >= all);
  CHECK(PretrainingRecords(file, {.vocab_size = 200, .spill = {run / "none", 0}}).bytes() >= all);
  PretrainingRecords repeated({file[0], file[0], file[0]}, {.vocab_size = 200, .threads = 3, .spill = {run / "", 0}});
  CHECK(repeated.examples(0) == 3 * kRecordsPerFile);
  CHECK(PretrainingRecords(file, {.vocab_size = 200, .most_decompressed = 10'000}).examples(0) == kRecordsPerFile);
  CHECK_THROWS_WITH_AS(
      PretrainingRecords(file, {.vocab_size = 200, .most_decompressed = 5'000}),
      (file[0].string() + ": expected at most 5 kB after decompression, got more; hint: unpack it first").c_str(),
      Error);
}

TEST_CASE("the indexes of some files can be made without reading the others, and a rehearsal keeps none") {
  const ThreeFiles three;
  PretrainingRecords(three.files(), {.vocab_size = 200, .keep_index = false});
  for (const fs::path& file : three.files()) CHECK(!fs::exists(RecordIndex::file_of(file)));
  PretrainingRecords::make_indexes({}, {.vocab_size = 200});
  PretrainingRecords::make_indexes({three.files()[1], three.files()[2]}, {.vocab_size = 200});
  CHECK(!fs::exists(RecordIndex::file_of(three.files()[0])));
  CHECK(fs::exists(RecordIndex::file_of(three.files()[2])));
}

TEST_CASE("the most tokens and the most masked ones are those of any records, each list from the largest on") {
  using Ints = std::vector<std::int64_t>;
  const support::TemporaryDirectory directory;
  std::string framed;
  for (const std::int64_t masked : {1, 3, 2}) {  // of 6, 4 and 5 tokens
    Ints mask(6, 0), positions(3, 0);
    std::vector<float> weights(3, 0);
    std::fill_n(mask.begin(), 7 - masked, 1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(masked); ++i)
      positions[i] = static_cast<std::int64_t>(i) + 1, weights[i] = 1;
    bertrand::io::append_record(framed, support::serialize_example({{"input_ids", Ints(6, 5)},
                                                                    {"input_mask", mask},
                                                                    {"segment_ids", Ints(6, 0)},
                                                                    {"masked_lm_positions", positions},
                                                                    {"masked_lm_ids", Ints(3, 5)},
                                                                    {"masked_lm_weights", weights},
                                                                    {"next_sentence_labels", Ints{1}}}));
  }
  write_text(directory / "r", framed);
  const std::vector<ExampleSize> sizes = PretrainingRecords({directory / "r"}, {.vocab_size = 10}).largest(3);
  REQUIRE(sizes.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(sizes[i].tokens == 6 - static_cast<std::int64_t>(i));
    CHECK(sizes[i].masked == 3 - static_cast<std::int64_t>(i));
  }
}
