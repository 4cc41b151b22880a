#include "io/tfrecord.h"

#include <doctest/doctest.h>

#include "io/crc32c.h"
#include "io/error.h"
#include "support/faulty_files.h"
#include "support/gzip.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand::io;
using bertrand::Error;
using bertrand::Failure;
using support::read_text;
using support::write_text;
using Strings = std::vector<std::string>;
namespace fs = std::filesystem;

namespace {

const Strings kRecords = {"first", "", std::string(100, 'x'), "last"};

std::string framed(const Strings& records) {
  std::string bytes;
  for (const std::string& record : records) append_record(bytes, record);
  return bytes;
}

Strings read_all(const fs::path& file, OnCorrupt on_corrupt = OnCorrupt::stop) {
  RecordReader reader(file, on_corrupt);
  Strings records;
  for (std::string record; reader.next(record);) records.push_back(record);
  return records;
}

/// The error of reading a file, which begins with its name and an offset; "" if there is none.
std::string error_of(const fs::path& file) {
  try {
    read_all(file);
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::input);
    const std::string message = error.what();
    CHECK(message.starts_with(file.string() + "@"));
    CHECK(message.find('\n') == std::string::npos);
    return message;
  }
  return "";
}

}  // namespace

TEST_CASE("records come back as they were, plain and compressed") {
  const support::TemporaryDirectory directory;
  write_text(directory / "r", framed(kRecords));
  CHECK(read_all(directory / "r") == kRecords);
  write_text(directory / "r.gz", support::gzipped(framed(kRecords)));
  CHECK(read_all(directory / "r.gz") == kRecords);
  write_text(directory / "empty", "");
  CHECK(read_all(directory / "empty").empty());
}

TEST_CASE("records come back from files of more than what is read at once") {
  const support::TemporaryDirectory directory;
  const Strings records = {std::string(700'000, 'a'), std::string(700'000, 'b'), "c", std::string(2'500'000, 'd')};
  write_text(directory / "r", framed(records));
  CHECK(read_all(directory / "r") == records);
  write_text(directory / "r.gz", support::gzipped(framed(records)));
  CHECK(read_all(directory / "r.gz") == records);
}

TEST_CASE("one record is read again where it was found, and refused if a byte of it is another") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "r";
  const std::string good = framed(kRecords);
  write_text(file, good);
  RecordReader reader(file);
  for (std::string record; reader.next(record);) {
    const std::uint64_t begin = reader.offset();
    const std::uint32_t crc = crc32c(record);
    const auto is_refused = [&](std::uint64_t offset, std::size_t bytes, std::uint32_t expected) {
      const auto again = [&] { read_record_at(file, offset, bytes, expected); };
      return !support::refusal(Failure::input, again).empty();
    };
    CHECK(read_record_at(file, begin, record.size(), crc) == record);
    CHECK(is_refused(begin + 1, record.size(), crc));
    CHECK(is_refused(begin, record.size() + 1, crc));
    CHECK(is_refused(begin, record.size(), crc ^ 1));
    for (std::size_t i = 0; i < record.size() + 16; ++i) {
      std::string bad = good;
      bad[begin + i] = static_cast<char>(bad[begin + i] ^ 1);
      write_text(file, bad);
      CHECK(is_refused(begin, record.size(), crc));
    }
    write_text(file, good.substr(0, begin + record.size() + 15));
    CHECK(is_refused(begin, record.size(), crc));
    write_text(file, good);
  }
}

TEST_CASE("a record whose length looks like gzip is none") {
  const support::TemporaryDirectory directory;
  const Strings records = {std::string(0x8B1F, 'y')};
  write_text(directory / "r", framed(records));
  CHECK(read_all(directory / "r") == records);
}

TEST_CASE("a record with any bit flipped names its file and offset") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "r";
  const std::string good = framed(kRecords);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
    write_text(file, bad);
    const std::string error = error_of(file);
    std::size_t offset = 0;  // of the record that holds byte i
    for (const std::string& record : kRecords) {
      if (i < offset + record.size() + 16) break;
      offset += record.size() + 16;
    }
    REQUIRE(error.starts_with(file.string() + "@" + std::to_string(offset) + ": record "));
    CHECK(error.find("crc: expected 0x") != std::string::npos);
  }
}

TEST_CASE("a file cut at any length gives whole records and then names the place of the cut") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "r";
  const std::string good = framed(kRecords);
  std::size_t at_record_ends = 0;
  for (std::size_t size = 0; size < good.size(); ++size) {
    write_text(file, good.substr(0, size));
    const std::string error = error_of(file);
    at_record_ends += error.empty();
    if (!error.empty()) CHECK(error.find("to the end of the file") != std::string::npos);
  }
  CHECK(at_record_ends == kRecords.size());
}

TEST_CASE("a compressed file that is damaged or cut is an error, never a crash") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "r";
  write_text(file, support::gzipped(framed(kRecords)));
  const std::string good = read_text(file);
  for (std::size_t size = 20; size + 1 < good.size(); ++size) {
    write_text(file, good.substr(0, size));
    CHECK_FALSE(error_of(file).empty());
  }
  for (std::size_t i = 10; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    write_text(file, bad);
    error_of(file);
  }
}

TEST_CASE("what a compressed file is damaged by is said without a name of its own") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "r";
  write_text(file, support::gzipped(framed(kRecords)));
  write_text(file, read_text(file).substr(0, 60));
  const std::string error = error_of(file);
  CHECK(error.find("of compressed data, got ") != std::string::npos);
  CHECK(error.find(" and then: unexpected end of file; hint: ") != std::string::npos);
}

TEST_CASE("a TFRecord is known by its beginning, plain and compressed, whatever its name") {
  const support::TemporaryDirectory directory;
  const auto is = [&](const std::string& bytes) {
    write_text(directory / "r.txt", bytes);
    return is_tfrecord(directory / "r.txt");
  };
  const std::string good = framed(kRecords);
  CHECK(is(good));
  CHECK(is(good.substr(0, 12)));
  CHECK_FALSE(is(good.substr(0, 11)));
  CHECK_FALSE(is(""));
  CHECK_FALSE(is("a sentence a line\n"));
  std::string bad = good;
  bad[3] ^= 1;
  CHECK_FALSE(is(bad));
  write_text(directory / "r.gz", support::gzipped(good));
  CHECK(is_tfrecord(directory / "r.gz"));
  CHECK_FALSE(is(read_text(directory / "r.gz").substr(0, 12)));
  write_text(directory / "t.gz", support::gzipped("a sentence a line\n"));
  CHECK_FALSE(is_tfrecord(directory / "t.gz"));
  CHECK_FALSE(is_tfrecord("/tmp"));
  CHECK_FALSE(is_tfrecord(directory / "none"));
}

TEST_CASE("a length that claims more than the file has takes no memory for it") {
  const support::TemporaryDirectory directory;
  const std::uint64_t claim = kMostRecord;
  std::string bytes(reinterpret_cast<const char*>(&claim), 8);
  const std::uint32_t crc = bertrand::io::masked(bertrand::io::crc32c(bytes));
  bytes.append(reinterpret_cast<const char*>(&crc), 4).append("few bytes");
  write_text(directory / "r", bytes);
  CHECK(error_of(directory / "r").find("expected 268435456 bytes, got 9 to the end of the file") != std::string::npos);
}

TEST_CASE("with skip a bad record is left out, and the rest of the file where a length is bad") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "r";
  std::string bad = framed(kRecords);
  bad[14] ^= 1;  // in "first"
  write_text(file, bad);
  RecordReader reader(file, OnCorrupt::skip);
  std::string record;
  CHECK(reader.next(record));
  CHECK(record.empty());
  CHECK(reader.offset() == 21);
  CHECK(reader.skipped() == 1);
  CHECK(reader.skipped_text().starts_with(file.string() + "@0: record data crc: expected "));
  CHECK(reader.skipped_text().ends_with("; skipped 1 corrupt place of this file"));
  CHECK(read_all(file, OnCorrupt::skip) == Strings(kRecords.begin() + 1, kRecords.end()));
  bad[21] ^= 1;  // in the length of the second
  write_text(file, bad);
  CHECK(read_all(file, OnCorrupt::skip).empty());
  const auto rest_after = [&](const fs::path& of, const std::string& first) {
    RecordReader cut(of, OnCorrupt::skip);
    while (cut.next(record)) {
    }
    const std::string text = cut.skipped_text();
    CHECK_MESSAGE(text.starts_with(of.string() + "@0: record " + first + " crc: expected "), text);
    return text.substr(text.find("; skipped"));
  };
  const std::string size = std::to_string(bad.size()), rest = std::to_string(bad.size() - 21);
  CHECK(rest_after(file, "data") == "; skipped 2 corrupt places of this file, and from byte 21 on all the rest: " +
                                        rest + " of " + size + " bytes");
  write_text(directory / "r.gz", support::gzipped(bad));
  CHECK(rest_after(directory / "r.gz", "data") ==
        "; skipped 2 corrupt places of this file, and from byte 21 on all the rest");
  bad = framed(kRecords);
  bad[0] ^= 1;
  write_text(file, bad);
  CHECK(rest_after(file, "length") ==
        "; skipped 1 corrupt place of this file, and from byte 0 on all the rest: " + size + " of " + size + " bytes");
  write_text(file, "A text has no records.\n");
  CHECK(error_of(file).ends_with("; hint: is it a TFRecord file? --on-corrupt skip leaves the rest of the file out"));
}

TEST_CASE("a file that is not there, or is a directory, is named") {
  CHECK_THROWS_WITH_AS(RecordReader("/nowhere/r"),
                       "/nowhere/r: open: No such file or directory; hint: /nowhere is no directory", Error);
  CHECK_THROWS_WITH_AS(RecordReader("/tmp"), "/tmp: records: expected a file, got a directory", Error);
}

TEST_CASE("a record that would take more memory than a record may is refused before it is read") {
  const support::TemporaryDirectory directory;
  const std::uint64_t length = kMostRecord + 1;
  std::string header(reinterpret_cast<const char*>(&length), 8);
  const std::uint32_t crc = masked(crc32c(header));
  header.append(reinterpret_cast<const char*>(&crc), 4);
  write_text(directory / "r.gz", support::gzipped(header + std::string(100, 'x')));
  write_text(directory / "r", header);
  fs::resize_file(directory / "r", length + 16);  // takes no room on the disk
  for (const fs::path& file : {directory / "r.gz", directory / "r"})
    CHECK(error_of(file) == file.string() + "@0: record data: expected at most 268 MB, got " + std::to_string(length) +
                                " bytes; hint: --on-corrupt skip leaves the rest of the file out");
}
