// Text as it is read for pre-training: its documents and sentences, and what is said of text that is none.
#include <doctest/doctest.h>

#include <filesystem>

#include "bert/data/pretraining_text_corpus.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::data;
namespace fs = std::filesystem;
using Files = std::vector<fs::path>;

namespace {

/// Files of their own, which are gone after the test.
struct Texts {
  support::TemporaryDirectory directory;

  fs::path operator()(const std::string& name, const std::string& contents) const {
    support::write_text(directory / name, contents);
    return directory / name;
  }
};

Corpus read(const Files& files, const CorpusOptions& options = {.least_documents = 1}) {
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) words += std::string(1, c) + "\n##" + c + "\n";
  return read_corpus(files, text::Tokenizer(text::Vocabulary::parse(words, "vocab.txt")), options);
}

std::string refusal(const Files& files, const CorpusOptions& options = {}) {
  return support::refusal(Failure::input, [&] { read(files, options); });
}

}  // namespace

TEST_CASE("blank lines, also of other white space and with CRLF, end documents, and a byte order mark is no text") {
  const Texts text;
  const Corpus corpus = read({text("f",
                                   "\xEF\xBB\xBF"
                                   "a b\r\nc\r\n\r\nd\r\n \t\xC2\xA0\r\ne f\n\n\n")});
  CHECK(corpus.documents.documents == std::vector<std::uint64_t>{0, 2, 3, 4});
  CHECK(corpus.documents.sentences == std::vector<std::uint64_t>{0, 2, 3, 4, 6});
  CHECK(corpus.warnings.empty());
}

TEST_CASE("invalid UTF-8 is dropped, counted, and its first place is named") {
  const Texts text;
  const fs::path file = text("f",
                             "a b\n\nc\xFF"
                             "d\n\nx\xC3\n");
  const Corpus corpus = read({file});
  REQUIRE(corpus.warnings.size() == 1);
  CHECK(corpus.warnings[0].starts_with(file.string() + ":3: text: dropped 2 bytes that are not UTF-8, "));
  CHECK(corpus.ids.size() == 5);  // a, b, c ##d, x
}

TEST_CASE("what is no text is refused where its first NUL stands, also as Google reads") {
  const Texts text;
  const fs::path nul = text("nul", std::string("a b\n\nc\0d\n", 9)), wide = text("wide", std::string("\xFF\xFE"
                                                                                                     "a\0\n\0",
                                                                                                     6));
  for (const bool as_google : {false, true}) {
    CHECK(refusal({nul}, {.as_google = as_google}) == nul.string() + ":3: expected text in UTF-8, got a NUL byte");
    CHECK(refusal({wide}, {.as_google = as_google}) ==
          wide.string() + ":1: expected text in UTF-8, got a NUL byte; hint: it looks like UTF-16");
  }
}

TEST_CASE("text of which more than a twentieth of the tokens are [UNK] is read with one warning") {
  const Texts text;
  std::string usual = "щ\n";
  for (int i = 0; i < 19; ++i) usual += "a\n\n";
  CHECK(read({text("usual", usual)}).warnings.empty());
  const fs::path half = text("half", "щ ж\nи b\n\na b\n"), more = text("more", "щ ж\nи b\n");
  const std::string hint = " % of the tokens are [UNK]; hint: is the vocabulary of this language?";
  for (const bool as_google : {false, true}) {
    const CorpusOptions options{.threads = 2, .as_google = as_google, .least_documents = 1};
    CHECK(read({half}, options).warnings == std::vector{half.string() + ": 50" + hint});
    CHECK(read({more, half}, options).warnings == std::vector{more.string() + " and 1 more: 60" + hint});
  }
}

TEST_CASE("what was read is counted while it is read") {
  const Texts text;
  const Files files = {text("a", "a b\nc\n\n"), text("b", "d")};
  std::size_t bytes = 0;
  read(files, {.progress = [&](std::size_t more) { bytes += more; }});
  CHECK(bytes == fs::file_size(files[0]) + fs::file_size(files[1]));
}

TEST_CASE("text without a sentence, or with one document only, is refused in one line") {
  const Texts text;
  const fs::path empty = text("empty", ""), blank = text("blank", "\n\n \n"), one = text("one", "a b\nc d\n");
  CHECK(refusal({empty}) == empty.string() + ": text: expected sentences, a line each, got none");
  CHECK(refusal({blank}) == blank.string() + ": text: expected sentences, a line each, got none");
  CHECK(refusal({one}) == one.string() +
                              ": documents: expected at least 2, got 1; hint: a blank line ends a document, and random "
                              "next sentences come from other documents; --no-next-sentence needs none");
  CHECK(refusal({empty, blank, blank}) ==
        empty.string() + " and 2 more: text: expected sentences, a line each, got none");
  CHECK(refusal({"/nonexistent/x.txt"}).starts_with("/nonexistent/x.txt: open: No such file"));
  CHECK(refusal({one, one}) == "");  // the end of a file ends a document
}
