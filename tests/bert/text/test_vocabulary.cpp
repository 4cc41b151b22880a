#include "bert/text/vocabulary.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <future>
#include <string>
#include <vector>

#include "support/colliding.h"
#include "support/growth.h"
#include "support/gzip.h"
#include "support/program.h"
#include "support/refusal.h"

using bertrand::Error;
using bertrand::Failure;
using bertrand::text::Vocabulary;
using support::refusal;

namespace {

const std::string kSpecials = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";

std::string error_of(const std::string& bytes, const bertrand::text::VocabularyOptions& options = {}) {
  try {
    Vocabulary::parse(bytes, "v.txt", options);
  } catch (const Error& error) {
    CHECK(error.failure() == options.failure);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a token's id is the number of its line") {
  const std::string bytes = kSpecials + "a\r\n  b \n\nc\xFF";
  const Vocabulary vocabulary = Vocabulary::parse(bytes, "v.txt");
  CHECK(vocabulary.size() == 9);
  CHECK(vocabulary.id("a") == 5);
  CHECK(vocabulary.id("b") == 6);
  CHECK(vocabulary.id("") == 7);
  CHECK(vocabulary.id("c") == 8);
  CHECK(vocabulary.find("d") == -1);
  CHECK(vocabulary.token(6) == "b");
  CHECK(vocabulary.mask_id() == 4);
  CHECK(vocabulary.text() == kSpecials + "a\r\nb\n\nc");
  CHECK_THROWS_AS(vocabulary.id("d"), Error);
  CHECK(refusal(Failure::input, [&] { vocabulary.token(9); }) == "vocabulary: expected an id from 0 to 8, got 9");
  CHECK_THROWS_AS(vocabulary.token(-1), Error);
}

TEST_CASE("a vocabulary is saved byte for byte, but for what another program would read otherwise") {
  const auto saved = [](const std::string& bytes) { return Vocabulary::parse(bytes, "v.txt").text(); };
  for (const char* rest : {"a\r\n\n \nb", "##\u00e9\n\u2028\n", "a"})
    CHECK(saved(kSpecials + rest) == kSpecials + rest);
  CHECK(saved("\xEF\xBB\xBF" + kSpecials + "a\n") == kSpecials + "a\n");
  CHECK(saved(kSpecials + " a\nb \r\n\u00a0c\n") == kSpecials + "a\nb\nc\n");
  CHECK(saved(kSpecials + "a\xFF\nb\n") == kSpecials + "a\nb\n");
}

TEST_CASE("lines that Python strips to nothing are one token, at the first place and with the last number") {
  const Vocabulary vocabulary = Vocabulary::parse(kSpecials + "\u2028\na\n \nb\n", "v.txt");
  CHECK(vocabulary.size() == 9);
  CHECK(vocabulary.id("") == 7);
  CHECK(vocabulary.distinct_ids() == std::vector<std::int32_t>{0, 1, 2, 3, 4, 7, 6, 8});
}

TEST_CASE("a bad vocabulary is refused in one line that names file and line") {
  CHECK(error_of("") == "v.txt:1: vocabulary: expected one token a line, got an empty file");
  CHECK(error_of(kSpecials + "a\nb\na\n") ==
        "v.txt:8: vocabulary: expected every token once, got \"a\" again, first on line 6");
  CHECK(
      error_of("a\nb\n") ==
      "v.txt: vocabulary: expected the special tokens [UNK], [CLS], [SEP] and [MASK], got none [UNK]; hint: is it the "
      "vocabulary of a BERT?");
  for (const char* json : {R"({"model": {"vocab": {"[UNK]": 1}}})", "{\n  \"a\": {\n  },\n  \"b\": {\n  },\n}\n"})
    CHECK(error_of(json) ==
          "v.txt: vocabulary: expected one token a line, got JSON; hint: is it a tokenizer.json? export --format "
          "huggingface writes the vocab.txt of its model");
  CHECK(error_of("{\n}\n" + kSpecials) == "");
  for (const std::string missing : {"[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    std::string lines;
    for (const std::string special : {"[UNK]", "[CLS]", "[SEP]", "[MASK]"})
      lines += special == missing ? "" : special + "\n";
    CHECK(error_of(lines).find("got none " + missing) != std::string::npos);
  }
  CHECK(error_of("a\n[UNK]\n", {.require_specials = false}) == "");
  CHECK(error_of("a\n", {.failure = Failure::input, .require_specials = false}).find("got none [UNK]") !=
        std::string::npos);
}

TEST_CASE("a vocabulary that is not there, a directory, too long, or on a disk that fails is refused as what it is") {
  const auto load = [](const char* file) { return [file] { Vocabulary::load(file); }; };
  CHECK(refusal(Failure::input, load("/nowhere/vocab.txt")) ==
        "/nowhere/vocab.txt: open: No such file or directory; hint: /nowhere is no directory");
  CHECK(refusal(Failure::model, load("/tmp")) == "/tmp: vocabulary: expected a file, got a directory");
  CHECK(refusal(Failure::model, load("/dev/zero")) ==
        "/dev/zero: vocabulary: expected at most 33.6 MB, got more; hint: is it a text?");
  // The system opens it and fails to read it, as it does with a bad disk.
  CHECK(refusal(Failure::io, load("/proc/self/mem")) == "/proc/self/mem: read: Input/output error");
}

TEST_CASE("a vocabulary whose tokens are made to have equal hashes is read in a time that grows with its size alone") {
  constexpr int kTokens = 2000;
  const std::vector<std::string> tokens = support::colliding_texts(4 * kTokens);
  const double growth = support::growth_by_four(kTokens, [&](int count) {
    std::string bytes = kSpecials;
    for (int i = 0; i < count; ++i) bytes += tokens[static_cast<std::size_t>(i)] + "\n";
    CHECK(error_of(bytes) == "");
  });
  CHECK(growth < 8);
}

TEST_CASE("a vocabulary comes out of a pipe too, in whatever parts") {
  const support::TemporaryDirectory directory;
  const std::string pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::string lines = kSpecials;
  for (int i = 0; i < 100'000; ++i) lines += fmt::format("w{}\n", i);  // more than a pipe holds
  const auto writer = std::async(std::launch::async, [&] { support::write_text(pipe, lines); });
  CHECK(Vocabulary::load(pipe).text() == lines);
}

TEST_CASE("a vocabulary is not unpacked") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "vocab.txt", support::gzipped(kSpecials + "a\n"));
  CHECK(refusal(Failure::model, [&] { Vocabulary::load(directory / "vocab.txt"); }) != "");
}

TEST_CASE("a byte order mark before the first token is no part of it") {
  CHECK(Vocabulary::parse("\xEF\xBB\xBF" + kSpecials, "v.txt").id("[PAD]") == 0);
}

TEST_CASE("a vocabulary has capitals if one of its words has, whatever its marks have") {
  const auto has = [](const std::string& lines) { return Vocabulary::parse(lines, "v.txt").has_capitals(); };
  CHECK_FALSE(has(kSpecials + "red\n[X]\nB2\n##\n"));
  CHECK(has("A\n" + kSpecials));
  CHECK(has(kSpecials + "##Z\n"));
  CHECK(has(kSpecials + "aB\n"));
}

TEST_CASE("white space of any kind and in any order goes from both ends of a text") {
  CHECK(bertrand::text::strip(" \ta") == "a");
  CHECK(bertrand::text::strip("a\t ") == "a");
  CHECK(bertrand::text::strip("\u3000 \u2028a b\u00a0\n") == "a b");
  CHECK(bertrand::text::strip(" \n").empty());
}
