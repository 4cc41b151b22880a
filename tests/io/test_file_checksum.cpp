#include "io/file_checksum.h"

#include <doctest/doctest.h>

#include "io/crc32c.h"
#include "io/error.h"
#include "io/signals.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand::io;
using support::write_text;
namespace fs = std::filesystem;

namespace {

std::string some_bytes(std::size_t count) {
  std::string bytes(count, ' ');
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 37 + i / 7 + i / 4096);
  return bytes;
}

}  // namespace

TEST_CASE("files are summed in pieces by any number of threads") {
  const support::TemporaryDirectory directory;
  const std::string large = some_bytes((std::size_t{33} << 20) + 5), small = some_bytes(9);
  write_text(directory / "large", large);
  write_text(directory / "empty", "");
  write_text(directory / "small", small);
  const std::vector<fs::path> files = {directory / "large", directory / "empty", directory / "small"};
  for (const int threads : {1, 2, 5})
    CHECK(crc32c_of_files(files, threads) == std::vector<std::uint32_t>{crc32c(large), 0, crc32c(small)});
  CHECK(crc32c_of_files({}, 2).empty());
  const std::vector<fs::path> directories = {directory / "."};
  CHECK_THROWS(crc32c_of_files(directories, 1));
}

TEST_CASE("summing files ends when the process is asked to leave, on all threads") {
  const support::TemporaryDirectory directory;
  write_text(directory / "small", some_bytes(9));
  const std::vector<fs::path> files(5, directory / "small");
  const LeaveRequest leave;
  CHECK(support::refusal(bertrand::Failure::interrupted, [&] {
          crc32c_of_files(files, 2);
        }).starts_with("interrupted while comparing checksums: nothing was written"));
}

TEST_CASE("the sample of a file is its first and last blocks and 14 between") {
  const support::TemporaryDirectory directory;
  const fs::path file = directory / "f";
  const auto sample = [&](const std::string& bytes) {
    write_text(file, bytes);
    return crc32c_of_sample(file);
  };
  for (const std::size_t size : {0, 1, 65535, 65536}) CHECK(sample(some_bytes(size)) == crc32c(some_bytes(size)));
  const std::string whole = some_bytes(4096 + 15 * 10000);  // blocks begin at each 10000
  const std::uint32_t expected = sample(whole);
  for (std::size_t block = 0; block < 16; ++block) {
    for (const std::size_t byte : {block * 10000, block * 10000 + 4095, block * 10000 + 4096}) {
      if (byte == whole.size()) continue;
      std::string changed = whole;
      changed[byte] = static_cast<char>(changed[byte] ^ 1);
      CHECK((sample(changed) != expected) == (byte % 10000 < 4096));
    }
  }
  std::string longer = some_bytes(4096 + 15 * 10000 + 7);
  const std::uint32_t of_longer = sample(longer);
  longer.back() = static_cast<char>(longer.back() ^ 1);
  CHECK(sample(longer) != of_longer);
  CHECK_THROWS_AS(crc32c_of_sample(directory / "none"), bertrand::Error);
}
