// What another user of a shared folder may put in the place of a corpus that is being written.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>

#include "bert/data/corpus_writer.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::data;
using support::read_text;
using support::write_text;
namespace fs = std::filesystem;

namespace {

constexpr const char* kPrecious = "a file of the user's, which is longer than any file of the corpus below\n";

/// A text of two documents, which makes two shards, and a file that nobody may write to.
struct Setting {
  Setting() {
    write_text(precious, kPrecious);
    write_text(directory / "t", "a b\na b\na b\n\nb a\nb\n");
  }

  CorpusResult write() const { return write_corpus(job, tokenizer); }
  /// Stops when the text is read and its place is saved.
  void begin() const {
    CorpusJob begun = job;
    begun.stop = [] { return true; };
    begun.progress = [](std::uint64_t) { fail(Failure::interrupted, "stopped"); };
    CHECK(support::refusal(Failure::interrupted, [&] { write_corpus(begun, tokenizer); }) == "stopped");
  }
  std::string refusal(Failure failure) const {
    return support::refusal(failure, [&] { write(); });
  }
  std::map<std::string, std::string> corpus() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(job.output)) {
      CHECK(!entry.is_symlink());
      files[entry.path().filename()] = read_text(entry.path());
    }
    return files;
  }

  const support::TemporaryDirectory directory;
  const text::Tokenizer tokenizer{text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n", "vocab.txt")};
  const CorpusJob job{.inputs = {directory / "t"}, .output = directory / "c", .shards = 2};
  const fs::path partial = directory / "c.partial", precious = directory / "precious";
};

}  // namespace

TEST_CASE("a link in the place of a file of a corpus is not followed, and what it leads to keeps its bytes") {
  const Setting setting;
  setting.write();
  const auto expected = setting.corpus();
  REQUIRE(expected.size() == 7);  // three files for each shard, and the manifest
  for (const bool leads_to_a_file : {true, false}) {
    fs::remove_all(setting.job.output);
    fs::create_directory(setting.partial);
    for (const auto& [name, bytes] : expected)
      fs::create_symlink(leads_to_a_file ? setting.precious : setting.directory / "nothing", setting.partial / name);
    setting.write();
    CHECK(setting.corpus() == expected);
    CHECK(read_text(setting.precious) == kPrecious);
    CHECK(!fs::exists(setting.directory / "nothing"));
  }
}

TEST_CASE("a corpus goes on with no file that has become a link, and what it leads to keeps its bytes") {
  const Setting setting;
  setting.begin();
  for (const char* name : {"shard-00001.documents", "shard-00001.sentences", "shard-00001.ids"}) {
    CAPTURE(name);
    const fs::path file = setting.partial / name, kept = setting.directory / "kept";
    fs::rename(file, kept);
    fs::create_symlink(setting.precious, file);
    CHECK(setting.refusal(Failure::input) ==
          file.string() + ": expected the file that progress.json tells of, got a link; hint: remove the directory");
    CHECK(read_text(setting.precious) == kPrecious);
    fs::remove(file);
    fs::rename(kept, file);
  }
  CHECK(setting.write().begun_bytes > 0);
  CHECK(setting.corpus().size() == 7);
}

TEST_CASE("a link in the place of the directory that is locked and filled is refused, wherever it leads") {
  const Setting setting;
  const fs::path target = setting.directory / "target";
  fs::create_directory(target);
  write_text(target / "shard-00000.ids", kPrecious);
  for (const fs::path& to : {target, setting.precious, setting.directory / "nothing"}) {
    fs::create_symlink(to, setting.partial);
    CHECK(setting.refusal(Failure::usage) ==
          "--output: " + setting.partial.string() +
              ": expected nothing or a directory of your own, got a link; hint: remove it, or name another --output");
    CHECK(fs::is_symlink(setting.partial));
    fs::remove(setting.partial);
  }
  CHECK(read_text(target / "shard-00000.ids") == kPrecious);
  CHECK(std::distance(fs::directory_iterator(target), {}) == 1);
  CHECK(read_text(setting.precious) == kPrecious);
  CHECK(!fs::exists(setting.directory / "nothing"));
}

TEST_CASE("a directory of another user in the place of the one that is filled is refused and left alone") {
  const Setting setting;
  setting.begin();
  if (::chown(setting.partial.c_str(), 54'321, 54'321) != 0) {
    MESSAGE("SKIPPED: only root can give a directory away");
    return;
  }
  CHECK(setting.refusal(Failure::usage) ==
        "--output: " + setting.partial.string() +
            ": expected nothing or a directory of your own, got another user's; hint: remove it, or name another "
            "--output");
  CHECK(fs::exists(setting.partial / "progress.json"));
  REQUIRE(::chown(setting.partial.c_str(), ::geteuid(), ::getegid()) == 0);
  CHECK(setting.write().begun_bytes > 0);
}

TEST_CASE("a link of another user in the place of the saved progress of a corpus is not followed") {
  const Setting setting;
  fs::create_directory(setting.partial);
  const fs::path link = setting.partial / "progress.json";
  fs::create_symlink(setting.directory / "nothing", link);
  if (::lchown(link.c_str(), 54'321, 54'321) != 0) {
    MESSAGE("SKIPPED: only root can give a link away");
    return;
  }
  setting.begin();
  CHECK(!fs::is_symlink(link));
  CHECK(!fs::exists(setting.directory / "nothing"));
  CHECK(setting.write().begun_bytes > 0);
}
