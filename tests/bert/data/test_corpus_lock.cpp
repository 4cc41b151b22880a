// A corpus that two processes write at once.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>

#include <filesystem>

#include "bert/data/corpus_writer.h"
#include "io/descriptor.h"
#include "support/file_limit.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::data;

TEST_CASE("a corpus that another process writes is left alone, as one is that cannot be locked") {
  const support::TemporaryDirectory directory;
  const text::Tokenizer tokenizer(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n", "vocab.txt"),
                                  {});
  support::write_text(directory / "t", "a b\na\n\nb a\nb\n");
  const CorpusJob job{.inputs = {directory / "t"}, .output = directory / "c"};
  const auto refusal = [&](Failure failure) {
    return support::refusal(failure, [&] { write_corpus(job, tokenizer); });
  };
  const std::filesystem::path partial = directory / "c.partial";
  std::filesystem::create_directory(partial);
  support::write_text(partial / "of-the-other", "");
  {
    const io::Descriptor other(::open(partial.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    REQUIRE(::flock(other.number(), LOCK_EX | LOCK_NB) == 0);
    CHECK(refusal(Failure::usage).starts_with("--output: " + partial.string() + ": "));
  }
  CHECK(std::filesystem::exists(partial / "of-the-other"));
  {
    const support::FileLimit none(0);
    CHECK(refusal(Failure::io) == partial.string() + ": open: Too many open files");
  }
  CHECK(std::filesystem::exists(partial / "of-the-other"));
  write_corpus(job, tokenizer);
  CHECK(std::filesystem::is_directory(directory / "c"));
}
