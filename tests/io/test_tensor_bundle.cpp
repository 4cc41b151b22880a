// Checkpoints of TensorFlow: real indexes written again, tensors written and read, and what is refused.
#include "io/tensor_bundle.h"

#include <doctest/doctest.h>

#include <cstring>

#include "io/crc32c.h"
#include "io/error.h"
#include "io/protobuf.h"
#include "io/table.h"
#include "support/faulty_files.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;
using support::read_text;
using support::write_text;

namespace {

namespace fs = std::filesystem;

/// A tensor of these bytes.
TensorSource source_of(const std::string& name, const char* type, std::vector<std::int64_t> dims,
                       const std::string& bytes) {
  return {.name = name,
          .type = find_safetensors_type(type),
          .dims = std::move(dims),
          .bytes = bytes.size(),
          .read = [bytes](std::uint64_t first, std::span<std::byte> part) {
            std::memcpy(part.data(), bytes.data() + first, part.size());
          }};
}

/// One shard of 16 bytes, and an index with these entries.
struct Written {
  explicit Written(const std::vector<BundleEntry>& entries, std::uint32_t shards = 1, std::size_t bytes = 16) {
    write_text(directory / "p.index", bundle_index_bytes({.shards = shards, .entries = entries}));
    for (std::uint32_t i = 0; i < shards; ++i)
      write_text(directory / fmt::format("p.data-{:05}-of-{:05}", i, shards), std::string(bytes, 'x'));
  }
  /// What is said against it, the directory cut off.
  std::string refusal() const {
    std::string line = support::refusal(Failure::model, [&] {
      const BundleFile opened(directory / "p");
      std::vector<const BundleEntry*> all;
      for (const BundleEntry& entry : opened.entries()) all.push_back(&entry);
      opened.verify(all, 2);
    });
    const std::string path = (directory / "").string();
    return line.starts_with(path) ? line.substr(path.size()) : line;
  }
  support::TemporaryDirectory directory;
};

std::uint32_t crc_of(std::size_t bytes) { return masked(crc32c(std::string(bytes, 'x'))); }

std::string refusal_of_entry(const BundleEntry& entry) { return Written({entry}).refusal(); }

}  // namespace

TEST_CASE("the indexes of real checkpoints are written again byte by byte") {
  const fs::path data = bertrand::paths::shared + "/data/checkpoints_meta";
  if (!fs::exists(data)) {
    MESSAGE("SKIPPED: no " << data.string());
    return;
  }
  int count = 0;
  for (const auto& file : fs::recursive_directory_iterator(data)) {
    if (file.path().extension() != ".index") continue;
    const std::string bytes = read_text(file.path());
    const BundleIndex index = parse_bundle_index(bytes, file.path().string());
    CHECK(bundle_index_bytes(index) == bytes);
    const auto described = nlohmann::json::parse(read_text(file.path().string() + ".json"));
    REQUIRE(described.size() == index.entries.size());
    for (std::size_t i = 0; i < described.size(); ++i) {
      CHECK(described[i]["name"] == index.entries[i].name);
      CHECK(described[i]["shape"] == index.entries[i].dims);
      CHECK(described[i]["crc32c_masked"] == index.entries[i].crc);
    }
    ++count;
  }
  CHECK(count == 5);
}

TEST_CASE("a bundle of several types reads back") {
  const support::TemporaryDirectory directory;
  const std::string floats(24, 'f'), step(8, 's');
  write_bundle(Files::system(), directory / "p",
               {source_of("b/kernel", "F32", {2, 3}, floats), source_of("global_step", "I64", {}, step),
                source_of("a/empty", "I32", {0, 3}, ""), source_of("c", "BF16", {2}, "abcd")});
  const BundleFile opened(directory / "p");
  REQUIRE(opened.entries().size() == 4);
  std::vector<std::string> names;
  std::vector<const BundleEntry*> all;
  for (const BundleEntry& entry : opened.entries()) {
    names.push_back(entry.name);
    all.push_back(&entry);
  }
  CHECK(names == std::vector<std::string>{"a/empty", "b/kernel", "c", "global_step"});
  opened.verify(all, 2);
  CHECK(std::memcmp(opened.bytes(*all[1]).data(), floats.data(), 24) == 0);
  CHECK(std::memcmp(opened.bytes(*all[3]).data(), step.data(), 8) == 0);
  CHECK(all[1]->type_name() == "F32");
  CHECK(all[3]->dims.empty());
  CHECK(fs::file_size(directory / "p.data-00000-of-00001") == 36);
}

TEST_CASE("the bytes of a bundle are those of TensorFlow's SaveV2") {
  // tf.raw_ops.SaveV2 (2.21) of a = [1, 2] f32 and global_step = 7 i64
  const support::TemporaryDirectory directory;
  const float a[] = {1, 2};
  const std::int64_t step = 7;
  write_bundle(Files::system(), directory / "p",
               {source_of("a", "F32", {2}, {reinterpret_cast<const char*>(a), 8}),
                source_of("global_step", "I64", {}, {reinterpret_cast<const char*>(&step), 8})});
  const std::string bytes = read_text(directory / "p.index");
  CHECK(bytes.size() == 148);
  CHECK(fmt::format("{:08x}", crc32c(bytes)) == "6cac11d7");
}

TEST_CASE("what a checkpoint's index may not say is refused by the tensor's name") {
  const BundleEntry good{.name = "a", .type = 1, .dims = {2, 2}, .size = 16, .crc = crc_of(16)};
  CHECK(refusal_of_entry(good).empty());
  auto changed = [&](auto change) {
    BundleEntry entry = good;
    change(entry);
    return refusal_of_entry(entry);
  };
  CHECK(changed([](BundleEntry& e) { e.type = 99; }) ==
        "p.index: tensor \"a\": expected a type of numbers or strings, got number 99");
  CHECK(changed([](BundleEntry& e) {
          e.dims = {2, 3};
        }) == "p.index: tensor \"a\": size: expected 24 bytes for [2,3] of F32, got 16");
  CHECK(changed([](BundleEntry& e) {
          e.dims = {std::int64_t{1} << 40, std::int64_t{1} << 40};
        }) == "p.index: tensor \"a\": shape: expected fewer than 2^63 bytes, got [1099511627776,1099511627776] of F32");
  CHECK(changed([](BundleEntry& e) {
          e.dims = {0, std::int64_t{1} << 62, std::int64_t{1} << 62};  // the heads of an attention are multiplied
          e.size = 0;
        }).starts_with("p.index: tensor \"a\": shape: expected fewer than 2^63 bytes, got [0,4611686018427387904,"));
  CHECK(changed([](BundleEntry& e) { e.dims = {-1}; }) ==
        "p.index: tensor \"a\": shape: expected dimensions from 0, got -1");
  CHECK(changed([](BundleEntry& e) { e.dims.assign(255, 1); }) ==
        "p.index: tensor \"a\": shape: expected at most 254 dimensions, got more");
  CHECK(changed([](BundleEntry& e) { e.shard = 1; }) == "p.index: tensor \"a\": expected a shard below 1, got 1");
  CHECK(changed([](BundleEntry& e) { e.offset = 1; }) ==
        "p.data-00000-of-00001: tensor \"a\": expected to end by 16, where the file does, got 17; hint: is it cut "
        "short?");
  CHECK(changed([](BundleEntry& e) { e.offset = ~std::uint64_t{0}; }) ==
        "p.index: tensor \"a\": offset: expected one that a file can have, got 18446744073709551615");
  CHECK(changed([](BundleEntry& e) { e.offset = ~std::uint64_t{0} - 16; }) ==
        "p.data-00000-of-00001: tensor \"a\": expected to end by 16, where the file does, got "
        "18446744073709551615; hint: is it cut short?");
  const auto texts = [&](std::int64_t count) {  // of one byte each, as none is shorter
    return changed([&](BundleEntry& e) { e.type = 7, e.dims = {count}; });
  };
  CHECK(texts(16) == "");
  CHECK(texts(17) == "p.index: tensor \"a\": size: expected 17 bytes for [17] of STRING, got 16");
  CHECK(changed([](BundleEntry& e) { e.crc ^= 1; }).starts_with("p.index: tensor \"a\": crc32c: expected "));
  CHECK(changed([](BundleEntry& e) { e.name = std::string("a\n\x01", 3), e.type = 0; }) ==
        "p.index: tensor \"a\\x0a\\x01\": expected a type of numbers or strings, got number 0");
}

TEST_CASE("tensors that overlap are refused") {
  const Written written({{.name = "a", .type = 1, .dims = {2}, .offset = 0, .size = 8, .crc = crc_of(8)},
                         {.name = "b", .type = 1, .dims = {2}, .offset = 4, .size = 8, .crc = crc_of(8)}});
  CHECK(written.refusal() == "p.index: tensor \"b\": offset: expected at least 8, where \"a\" ends, got 4");
  // One without numbers takes no place.
  CHECK(Written({{.name = "a", .type = 1, .dims = {2}, .offset = 0, .size = 8, .crc = crc_of(8)},
                 {.name = "b", .type = 1, .dims = {0}, .offset = 4, .size = 0, .crc = crc_of(0)}})
            .refusal()
            .empty());
}

TEST_CASE("the first damaged tensor is named, whatever the number of threads") {
  const auto at = [](const char* name, std::uint64_t offset, std::uint32_t damage) {
    return BundleEntry{.name = name, .type = 1, .dims = {1}, .offset = offset, .size = 4, .crc = crc_of(4) ^ damage};
  };
  const Written written({at("a", 0, 0), at("b", 4, 1), at("c", 8, 1), at("d", 12, 0)});
  const BundleFile opened(written.directory / "p");
  std::vector<const BundleEntry*> all;
  for (const BundleEntry& entry : opened.entries()) all.push_back(&entry);
  REQUIRE(all.size() == 4);
  for (const int threads : {1, 2, 5})
    CHECK(support::refusal(Failure::model, [&] { opened.verify(all, threads); }).starts_with(opened.place(*all[1])));
}

TEST_CASE("a shard that is missing is named") {
  const BundleEntry first{.name = "a", .type = 1, .dims = {4}, .shard = 0, .size = 16, .crc = crc_of(16)};
  BundleEntry second = first;
  second.name = "b";
  second.shard = 1;
  const Written written({first, second}, 2);
  CHECK(written.refusal().empty());
  fs::remove(written.directory / "p.data-00001-of-00002");
  CHECK(written.refusal() == "p.index: expected p.data-00001-of-00002 beside it, got no such file");
}

TEST_CASE("a directory in the place of an index is refused as one") {
  const support::TemporaryDirectory directory;
  fs::create_directory(directory / "p.index");
  CHECK(support::refusal(Failure::model, [&] { const BundleFile opened(directory / "p"); }) ==
        (directory / "p.index").string() + ": index of a checkpoint: expected a file, got a directory");
}

TEST_CASE("a partitioned variable is refused by name when it is read") {
  const Written written(
      {{.name = std::string("\0e", 2), .type = 1, .dims = {2}, .size = 8, .crc = crc_of(8)},
       {.name = "e", .type = 1, .dims = {4}, .slices = {"\x0a\x02\x10\x02", "\x0a\x04\x08\x02\x10\x02"}}});
  const BundleFile opened(written.directory / "p");
  REQUIRE(opened.entries().size() == 1);
  CHECK(support::refusal(Failure::model, [&] { opened.bytes(opened.entries()[0]); }) ==
        opened.path().string() +
            ": tensor \"e\": expected one piece, got a partitioned variable of 2; hint: save it "
            "without a partitioner");
}

TEST_CASE("what an index says beside the places of tensors is passed over") {
  // A shape whose rank is known, with a dimension that has a name. Then a field of a later version.
  const std::string shape("\x18\x00\x12\x05\x08\x02\x12\x01n\x12\x02\x08\x03", 13);
  const std::string entry = "\x08\x01\x12\x0d" + shape + "\x28\x18\x48\x07";
  const BundleIndex index = parse_bundle_index(table_bytes({{"", "\x08\x01\x48\x07"}, {"a", entry}}), "f");
  CHECK(index.shards == 1);
  REQUIRE(index.entries.size() == 1);
  CHECK(index.entries[0].dims == std::vector<std::int64_t>{2, 3});
  CHECK(index.entries[0].size == 24);
}

TEST_CASE("a tensor of one byte is read") {
  const Written written({{.name = "a", .type = 6, .dims = {}, .offset = 15, .size = 1, .crc = crc_of(1)}});
  const BundleFile opened(written.directory / "p");
  CHECK(opened.bytes(opened.entries()[0]).size() == 1);
  CHECK(written.refusal().empty());
}

TEST_CASE("headers of other formats are refused") {
  const auto refusal = [](const std::string& header) {
    return support::refusal(Failure::model, [&] { parse_bundle_index(table_bytes({{"", header}}), "f"); });
  };
  CHECK(refusal("\x08\x01\x1a\x02\x08\x01").empty());
  CHECK(refusal(std::string("\x08\x00", 2)) == "f: header: expected from 1 to 99999 shards, got 0");
  CHECK(refusal("\x1a\x02\x08\x01") == "f: header: expected from 1 to 99999 shards, got 0");  // it is left out
  CHECK(refusal("\x08\x9f\x8d\x06").empty());
  CHECK(refusal("\x08\xa0\x8d\x06") == "f: header: expected from 1 to 99999 shards, got 100000");
  CHECK(refusal("\x08\x01\x10\x01") == "f: header: expected little-endian numbers, got big-endian ones");
  CHECK(refusal("\x08\x01\x1a\x02\x10\x01").empty());
  CHECK(refusal("\x08\x01\x1a\x02\x10\x02") ==
        "f: header: expected a version of at most 1, got 2; hint: is it newer than this program?");
  CHECK(support::refusal(Failure::model, [] {
          parse_bundle_index(table_bytes({{"a", ""}}), "f");
        }) == "f: expected the header of a TensorFlow checkpoint, got none");
}

namespace {

/// An index that was damaged is refused in one line, or what it says is safe to read.
void try_damaged(const std::string& bytes, const support::TemporaryDirectory& directory) {
  write_text(directory / "p.index", bytes);
  try {
    const BundleFile opened(directory / "p");
    std::size_t sum = 0;
    for (const BundleEntry& entry : opened.entries())
      if (entry.slices.empty())
        for (const std::byte b : opened.bytes(entry)) sum += static_cast<std::size_t>(b);
    CHECK(sum < 1'000'000);
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::model);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
  }
}

/// The three blocks of a small index: data, no meta blocks, index. Each comes with 5 bytes behind it.
std::string with_right_crcs(std::string bytes, std::size_t index_size) {
  constexpr std::size_t kMeta = 8;
  const std::size_t index = bytes.size() - 48 - 5 - index_size, meta = index - 5 - kMeta;
  for (const auto& [at, size] :
       {std::pair(std::size_t{0}, meta - 5), std::pair(meta, kMeta), std::pair(index, index_size)}) {
    const std::uint32_t crc = masked(crc32c(std::string_view(bytes).substr(at, size + 1)));
    std::memcpy(bytes.data() + at + size + 1, &crc, sizeof crc);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a checkpoint of TensorFlow that was written is there after a power failure") {
  const support::TemporaryDirectory directory, disk;
  support::RecordingFiles files(directory / "");
  write_bundle(files, directory / "p", {source_of("layer/a", "F32", {2, 1}, "12345678")});
  files.restore(files.calls(), support::Lost::data, disk / "");
  for (const std::string file : {"p.index", "p.data-00000-of-00001"})
    CHECK(read_text(disk / file) == read_text(directory / file));
}

TEST_CASE("no byte of an index that is changed and no cut crashes the reader") {
  const support::TemporaryDirectory directory;
  write_bundle(Files::system(), directory / "p",
               {source_of("layer/a", "F32", {2, 1}, "12345678"), source_of("layer/b", "F32", {0}, ""),
                source_of("global_step", "I64", {}, "12345678")});
  const std::string whole = read_text(directory / "p.index");
  constexpr std::size_t kIndex = 14;  // one entry: "h", and its block's place, 0 and a size below 128
  REQUIRE(with_right_crcs(whole, kIndex) == whole);
  for (std::size_t length = 0; length < whole.size(); ++length) try_damaged(whole.substr(0, length), directory);
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int change : {0x01, 0x80, 0xFF, 0x7F}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      try_damaged(damaged, directory);
      try_damaged(with_right_crcs(damaged, kIndex), directory);
    }
}
