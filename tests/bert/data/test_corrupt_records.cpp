// Files of records that were damaged, before their index is made and after it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "bert/data/three_files.h"
#include "io/error.h"

using namespace bertrand::data;
using bertrand::Error;
using support::record;
using support::ThreeFiles;
namespace fs = std::filesystem;

TEST_CASE("corrupt records are counted over all files, and the first one of each file is named") {
  const ThreeFiles three;
  const std::size_t framed = record(0).size() + 16;
  three.flip(0, 20);
  three.flip(2, 20);
  CHECK_THROWS_WITH_AS(three.open(), doctest::Contains("0@0: record data crc: expected 0x"), Error);
  PretrainingRecords records = three.open(bertrand::io::OnCorrupt::skip);
  CHECK(records.examples(0) == 118);
  CHECK(records.skipped() == 2);
  REQUIRE(records.warnings().size() == 2);
  for (const std::size_t file : {0, 1})
    CHECK(records.warnings()[file].starts_with(three.files()[2 * file].string() + "@0: record data crc"));
  CHECK(records.example(0, 0).token_ids.front() == 1);  // the record after the bad one keeps its own place
  CHECK(records.example(0, 79).token_ids.front() == 81);
  three.flip(2, framed + 3);  // the length of the second: what follows it in this file cannot be found
  PretrainingRecords rest = three.open(bertrand::io::OnCorrupt::skip);
  CHECK(rest.examples(0) == 79);
  CHECK(rest.skipped() == 3);
  CHECK(rest.warnings().at(0) == records.warnings()[0]);
  CHECK(rest.warnings().at(1).find(fmt::format("from byte {} on all the rest: ", framed)) != std::string::npos);
}

TEST_CASE("where nothing is left of corrupt files, what was skipped is said") {
  const ThreeFiles three;
  three.flip(0, 0);
  const fs::path first = three.files()[0];
  const PretrainingRecordsOptions skip{.vocab_size = 200, .on_corrupt = bertrand::io::OnCorrupt::skip};
  try {
    PretrainingRecords({first}, skip);
    FAIL("expected an error");
  } catch (const Error& error) {
    const std::string message = error.what(), where = first.string();
    CHECK(message.starts_with(where + ": records: expected at least one, got none; " + where +
                              "@0: record length crc: expected "));
  }
}

TEST_CASE("the index of a file that is corrupt is removed wherever it is, and a rehearsal leaves it") {
  const ThreeFiles three;
  const fs::path file = three.files()[0];
  const support::TemporaryDirectory run;
  const fs::path beside = RecordIndex::file_of(file), in_run = RecordIndex::file_of(file, run / "");
  PretrainingRecordsOptions options{.vocab_size = 200,
                                    .on_corrupt = bertrand::io::OnCorrupt::skip,
                                    .check = InputCheck::all,
                                    .keep_index = false,
                                    .run_directory = run / ""};
  three.open();
  fs::copy_file(beside, in_run);
  three.flip(0, 20);
  CHECK(PretrainingRecords({file}, options).examples(0) == 39);
  CHECK(fs::exists(beside));
  CHECK(fs::exists(in_run));
  options.keep_index = true;
  CHECK(PretrainingRecords({file}, options).examples(0) == 39);
  CHECK(!fs::exists(beside));
  CHECK(!fs::exists(in_run));
}
