// Tables of sorted keys: what is written and read, and what is refused.
#include "io/table.h"

#include <doctest/doctest.h>

#include <cstring>

#include "io/crc32c.h"
#include "io/error.h"
#include "io/little_endian.h"
#include "io/snappy.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;

namespace {

std::vector<std::pair<std::string, std::string>> pairs(const std::vector<TableEntry>& entries) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [key, value] : entries) all.emplace_back(key, value);
  return all;
}

std::string u32(std::uint32_t value) { return {reinterpret_cast<const char*>(&value), 4}; }

std::string handle(std::uint64_t offset, std::uint64_t size) {
  std::string text;
  append_varint(text, offset);
  append_varint(text, size);
  return text;
}

std::string with_trailer(std::string block, char compression) {
  block += compression;
  return block + u32(masked(crc32c(block)));
}

/// A table around data blocks, whose CRCs are right. The index names these places.
std::string around(std::string bytes, const std::vector<std::string>& handles) {
  std::string index;
  char key = static_cast<char>('{' - static_cast<char>(handles.size()));  // the last one is z
  for (const std::string& value : handles) {
    for (const std::size_t number : {std::size_t{0}, std::size_t{1}, value.size()}) append_varint(index, number);
    index += key++ + value;
  }
  index += u32(0) + u32(1);
  const std::string meta = handle(bytes.size(), 8);
  bytes += with_trailer(u32(0) + u32(1), '\0');
  std::string footer = meta + handle(bytes.size(), index.size());
  bytes += with_trailer(index, '\0');
  footer.resize(40, '\0');
  return bytes + footer + std::string("\x57\xfb\x80\x8b\x24\x75\x47\xdb", 8);
}
std::string around(const std::string& block, char compression = '\0') {
  return around(with_trailer(block, compression), {handle(0, block.size())});
}

std::string refusal(const std::string& bytes) {
  return support::refusal(Failure::model, [&] { parse_table(bytes, "f"); });
}

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

}  // namespace

TEST_CASE("a table with two data blocks reads back and its index has short separators") {
  const std::vector<TableEntry> entries{{"b/alpha", "1"}, {"b/gamma", "2"}};
  const std::string bytes = table_bytes(entries, 16);  // each entry fills a block
  CHECK(pairs(parse_table(bytes, "f")) == pairs(entries));
  const std::size_t block = 11 + 8;  // three lengths, key, value; one restart, their number
  const std::string index = std::string("\0\3\2b/b", 6) + handle(0, block) + std::string("\0\1\2c", 4) +
                            handle(block + 5, block) + u32(0) + u32(10 - 2) + u32(2);
  CHECK(bytes.find(index) != std::string::npos);
}

TEST_CASE("keys without a shorter one between them are their own separator") {
  const std::vector<TableEntry> entries{{"a1", "1"}, {"a2", "2"}, {"a21", "3"}, {"\xff\xff", "4"}};
  const std::string bytes = table_bytes(entries, 8);
  CHECK(pairs(parse_table(bytes, "f")) == pairs(entries));
  CHECK(bytes.find(std::string("\0\2\2a1", 5)) != std::string::npos);
  CHECK(bytes.find(std::string("\0\2\2a2", 5)) != std::string::npos);
  CHECK(bytes.find(std::string("\0\2\2\xff\xff", 5)) != std::string::npos);
}

TEST_CASE("many entries in many blocks read back") {
  std::vector<TableEntry> entries;
  for (int i = 0; i < 400; ++i) entries.push_back({fmt::format("layer_{:03}/kernel", i), std::string(20, 'v')});
  CHECK(pairs(parse_table(table_bytes(entries, 512), "f")) == pairs(entries));
  CHECK(table_bytes(entries).size() < table_bytes(entries, 512).size());
}

TEST_CASE("a large entry has a block of its own") {
  const std::vector<TableEntry> entries{{"a", "1"}, {"b", std::string(64, 'x')}, {"c", "3"}};
  const std::string bytes = table_bytes(entries, 32);
  CHECK(pairs(parse_table(bytes, "f")) == pairs(entries));
  // The first block: one entry of 5 bytes, one restart, their number.
  CHECK(bytes.substr(0, 13) == std::string("\0\1\1a1", 5) + u32(0) + u32(1));
}

TEST_CASE("a block ends as soon as it has the bytes asked for, and before an entry of twice as many") {
  const std::vector<TableEntry> two{{"b/alpha", "1"}, {"b/gamma", "2"}};  // the first makes a block of 19 bytes
  CHECK(table_bytes(two, 19) == table_bytes(two, 16));
  CHECK(table_bytes(two, 20) != table_bytes(two, 16));
  const auto after_first = [](std::size_t size) {
    return table_bytes({{"a", "1"}, {"b", std::string(size, 'x')}}, 32).substr(5, 4);
  };
  CHECK(after_first(62) == std::string("\0\1\x3e", 3) + "b");  // in the same block
  CHECK(after_first(63) == u32(0));                            // where the restarts of the first block are
}

TEST_CASE("a small table whose entries would take much memory is refused") {
  std::vector<TableEntry> entries;
  for (int i = 0; i < 4200; ++i) entries.push_back({std::string(4000, 'k') + fmt::format("{:04}", i), ""});
  const std::string bytes = table_bytes(entries);
  CHECK(bytes.size() < 2'000'000);
  CHECK(refusal(bytes).ends_with(": table: expected at most 16777216 bytes of entries, got more"));
  entries.resize(4000);
  CHECK(parse_table(table_bytes(entries), "f").size() == 4000);
}

TEST_CASE("a key is shown without what steers a terminal, and a long one is cut") {
  CHECK(printable(" ~\x1f\x7f\xff") == " ~\\x1f\\x7f\\xff");
  CHECK(printable(std::string(80, 'k')) == std::string(80, 'k'));
  CHECK(printable(std::string(81, 'k')) == std::string(80, 'k') + "…");
}

TEST_CASE("an empty table has an empty index") { CHECK(parse_table(table_bytes({}), "f").empty()); }

TEST_CASE("a table that another tool compressed is read") {
  // tensorflow/serving, saved_model_half_plus_two_cpu/00000123/variables
  const std::string bytes = from_hex(
      "646c00000608011a02080100010b61080112002804350638271f01010d32010f0420040d110c00010d6205112c0828043510"
      "fd784f00010d6305111c0c280435efd682c315333c10280435efd682c300000000010000000103da3e1d0000000001000000"
      "00c0f2a1b000010264005700000000010000000075f79c875c08690e00000000000000000000000000000000000000000000"
      "000000000000000000000000000057fb808b247547db");

  std::vector<std::string> keys;
  for (const TableEntry& entry : parse_table(bytes, "f")) keys.push_back(entry.key);
  CHECK(keys == std::vector<std::string>{"", "a", "a2", "b", "c", "c2"});
}

TEST_CASE("Snappy copies may reach into what they write") {
  // 10 bytes: the literal "ab", then a copy of 8 from 2 back
  CHECK(decompress_snappy(std::string("\x0a\x04"
                                      "ab\x11\x02",
                                      6),
                          100, "f", Failure::model) == "ababababab");
}

TEST_CASE("Snappy literals and copies with lengths and places of any number of bytes are read") {
  std::string first, second;
  for (int i = 0; i < 70; ++i) first += static_cast<char>(i * 37);
  for (int i = 0; i < 300; ++i) second += static_cast<char>(i * 91 + i / 7);
  const std::string length = "\xb7\x03";                // 439
  const std::string of_two_bytes = "\x12\x2c\x01";      // a copy of 5 from 300 back
  const std::string of_four = {"\xff\x72\x01\0\0", 5};  // of 64 from 370 back
  const std::string packed = length + "\xf0\x45" + first + "\xf4\x2b\x01" + second + of_two_bytes + of_four;
  CHECK(decompress_snappy(packed, 439, "f", Failure::model) ==
        first + second + second.substr(0, 5) + first.substr(5, 64));
}

TEST_CASE("bad Snappy data is refused") {
  const auto refusal = [](const std::string& bytes) {
    return support::refusal(Failure::model, [&] { decompress_snappy(bytes, 100, "f", Failure::model); });
  };
  CHECK(refusal("") == "f: Snappy: expected 1 bytes more, got 0; hint: is it cut short?");
  CHECK(refusal("\xff\xff\xff\xff\xff\x01") == "f: Snappy: length: expected at most 5 bytes, got more");
  CHECK(refusal("\x65") == "f: Snappy: expected at most 100 bytes, got a length of 101");
  CHECK(refusal("\x04\x04"
                "ab") == "f: Snappy: expected 4 bytes, as its length says, got 2");
  CHECK(refusal("\x01\x04"
                "ab") == "f: Snappy: expected 1 bytes, as its length says, got more");
  CHECK(refusal("\x05\x01\x01") == "f: Snappy: expected a copy from 1 to 0 bytes back, got 1");
  CHECK(refusal(std::string("\x06\x04"
                            "ab\x01\x00",
                            6)) == "f: Snappy: expected a copy from 1 to 2 bytes back, got 0");
  CHECK(refusal("\x05\x04"
                "ab\x11\x02") == "f: Snappy: expected 5 bytes, as its length says, got more");
  CHECK(refusal("\x04\xf0") == "f: Snappy: expected 1 bytes more, got 0; hint: is it cut short?");
}

TEST_CASE("a table that is cut or has another magic number is refused") {
  const std::string bytes = table_bytes({{"a", "1"}});
  CHECK(refusal(bytes.substr(0, 47)) == "f: table: expected at least 48 bytes, got 47; hint: is it cut short?");
  CHECK(refusal(std::string(48, 'x')).starts_with("f@40: table: expected the magic number "));
  std::string other = bytes;
  other.back() = 'x';
  CHECK(refusal(other) == fmt::format("f@{}: table: expected the magic number db4775248b80fb57, got 784775248b80fb57; "
                                      "hint: is it cut short, or no .index of a TensorFlow checkpoint?",
                                      bytes.size() - 8));
}

TEST_CASE("a block with a wrong CRC is refused") {
  std::string bytes = table_bytes({{"a", "1"}});
  bytes[4] = '2';
  CHECK(refusal(bytes).starts_with("f@0: table: block: crc32c: expected "));
}

TEST_CASE("blocks that are not well formed are refused") {
  const std::string restarts = u32(0) + u32(1);
  CHECK(refusal(around(std::string("\0\1\1a1", 5) + restarts)).empty());
  CHECK(refusal(around(u32(0))).empty());  // neither an entry nor a restart
  CHECK(refusal(around("abc")) == "f@0: table: expected a block of at least 4 bytes, got 3");
  CHECK(refusal(around(u32(1) + u32(9))) == "f@0: table: expected at most 1 restarts, got 9");
  CHECK(refusal(around(u32(1) + u32(2))) == "f@0: table: expected at most 1 restarts, got 2");
  CHECK(refusal(around(std::string("\0\1\1a1", 5) + u32(6) + u32(1))) ==
        "f@0: table: expected a restart within 5 bytes, got 6");
  CHECK(refusal(around("\1\1\1a1" + restarts)) ==
        "f@0: table: expected at most 0 bytes shared with the key before, got 1");
  CHECK(refusal(around(std::string("\0\1\2a1", 5) + restarts)) ==
        "f@0: table: expected an entry within its block, which has 2 bytes more, got 1 and 2");
  CHECK(refusal(around(std::string("\0\1\1b1\0\1\1a1", 10) + restarts)) ==
        "f@0: table: expected keys in order, got \"a\" after \"b\"");
  CHECK(refusal(around("\xff" + restarts)) == "f@0: table: expected a number, got none that ends");
  CHECK(refusal(around(std::string("\0\x81\x20\0", 4) + std::string(4097, 'k') + restarts)) ==
        "f@0: table: expected a key of at most 4096 bytes, got 4097");
  CHECK(refusal(around(restarts, '\2')) == "f@0: table: block: expected compression 0 (none) or 1 (Snappy), got 2");
}

TEST_CASE("keys that come twice or out of order are refused, in one block and in two, and the longest key is read") {
  const std::string restarts = u32(0) + u32(1);
  const auto entry = [](char key) { return std::string("\0\1\1", 3) + key + "1"; };
  CHECK_FALSE(refusal(around(entry('a') + entry('a') + restarts)).empty());
  const auto blocks = [](const std::string& one, const std::string& two) {
    const std::string first = with_trailer(one, '\0');
    return refusal(around(first + with_trailer(two, '\0'), {handle(0, one.size()), handle(first.size(), two.size())}));
  };
  const std::string a = entry('a') + restarts, b = entry('b') + restarts;
  CHECK(blocks(a, b).empty());
  CHECK(blocks(a, restarts).empty());  // the second one has no entry
  CHECK_FALSE(blocks(a, a).empty());
  CHECK_FALSE(blocks(b, a).empty());
  CHECK(refusal(around(std::string("\0\x80\x20\0", 4) + std::string(4096, 'k') + restarts)).empty());
}

TEST_CASE("an index that names one block twice is refused, so that none is read again and again") {
  const std::string empty = u32(0) + u32(1), one = with_trailer(empty, '\0');
  CHECK(refusal(around(one + one, {handle(0, empty.size()), handle(one.size(), empty.size())})).empty());
  CHECK(refusal(around(one + one, {handle(0, empty.size()), handle(0, empty.size())}))
            .ends_with("table: expected a block from byte 13 on, where the one before ends, got 0"));
}

TEST_CASE("a handle outside the file is refused") {
  std::string bytes = table_bytes({{"a", "1"}});
  bytes[bytes.size() - 48 + 3] = '\x7f';  // the size of the index
  CHECK(refusal(bytes) ==
        fmt::format("f@{0}: table: expected a block within {0} bytes, got 127 bytes at 31", bytes.size() - 48));
  const std::size_t end = bytes.size() - 48;
  for (const std::size_t size : {end - 31 - 4, end - 31 + 2}) {  // too large with what ends a block, and without
    bytes[end + 3] = static_cast<char>(size);
    CHECK(refusal(bytes) ==
          fmt::format("f@{0}: table: expected a block within {0} bytes, got {1} bytes at 31", end, size));
  }
}
