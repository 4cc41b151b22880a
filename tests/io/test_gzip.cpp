// gzip: several members are one file, and nothing of a file is passed over.
#include "io/gzip.h"

#include <doctest/doctest.h>

#include "io/byte_source.h"
#include "io/files.h"
#include "support/gzip.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;

namespace {

struct Unpacked {
  std::string text, damage;
  bool operator==(const Unpacked&) const = default;
};

Unpacked unpacked(const std::filesystem::path& file, std::size_t step) {
  Unpacked result;
  ByteSource source(file, "text");
  std::string part(step, '\0');
  while (const std::size_t count = source.read(part.data(), step)) result.text.append(part, 0, count);
  result.damage = source.damage();
  return result;
}

}  // namespace

TEST_CASE("members of a gzip file that follow each other are one text, and zeros after them are none") {
  const support::TemporaryDirectory directory;
  const std::string a = support::gzipped(std::string(300, 'a')), none = support::gzipped(""),
                    b = support::gzipped(std::string(300'000, 'b'));
  const std::string zeros(5000, '\0');
  for (const std::string& file : {a + b, a + none + none + b + zeros, a + zeros + b}) {
    support::write_text(directory / "f.gz", file);
    for (const std::size_t step : {std::size_t{7}, std::size_t{1} << 20})
      CHECK(unpacked(directory / "f.gz", step) == Unpacked{std::string(300, 'a') + std::string(300'000, 'b'), ""});
  }
}

TEST_CASE("a file that is called as a compressed one and does not begin as one is refused") {
  const support::TemporaryDirectory directory;
  const auto refusal = [&](const std::string& name, const std::string& bytes) {
    support::write_text(directory / name, bytes);
    return support::refusal(Failure::input, [&] { ByteSource(directory / name, "text"); });
  };
  const auto message = [&](const std::string& name, const std::string& got, const std::string& hint = "cut short") {
    return (directory / name).string() + ": expected data of gzip or Zstandard, as its name says, got " + got +
           "; hint: is it " + hint + "?";
  };
  CHECK(refusal("f.gz", "\x1F") == message("f.gz", "another beginning"));
  CHECK(refusal("f.zst", "\x28\xB5\x2F") == message("f.zst", "another beginning"));
  CHECK(refusal("f.txt.gz", "a text of some words\n") ==
        message("f.txt.gz", "another beginning", "unpacked already, so that it needs another name"));
  for (const char* name : {"f.gz", "f.zst", "F.GZ"}) CHECK(refusal(name, "") == message(name, "an empty file"));
  CHECK(refusal("f.txt", "") == "");
  CHECK(refusal("f.gz", support::gzipped("")) == "");
  CHECK(refusal("f.zst", std::string("\x50\x2A\x4D\x18\0\0\0\0", 8)) == "");  // as pzstd begins
}

TEST_CASE("what follows a member of a gzip file and is none is damage, and so are a cut and a wrong sum") {
  const support::TemporaryDirectory directory;
  const std::string a = support::gzipped(std::string(300, 'a'));
  const auto damage = [&](const std::string& file) {
    support::write_text(directory / "f.gz", file);
    const Unpacked read = unpacked(directory / "f.gz", 512);
    CHECK(read.text == std::string(300, 'a'));
    return read.damage;
  };
  std::string other = a;
  other[0] = 'Z';
  CHECK(damage(a + other) == "incorrect header check");
  CHECK(damage(a + std::string(3, '\0') + "rest") == "incorrect header check");
  CHECK(damage(a + a.substr(0, 5)) == "unexpected end of file");
  CHECK(damage(a + "\x1F") == "unexpected end of file");
  CHECK(damage(a.substr(0, a.size() - 1)) == "unexpected end of file");
  std::string wrong = a;
  wrong[wrong.size() - 5] ^= 1;
  CHECK(damage(wrong) == "incorrect data check");
}
