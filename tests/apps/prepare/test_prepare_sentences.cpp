#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "support/gzip.h"
#include "support/program.h"

using support::Outcome;
using support::read_text;
using support::run_program;
using support::TemporaryDirectory;
using support::write_text;
namespace fs = std::filesystem;

namespace {

/// Inputs by their names, which go with their directory.
class Setting {
 public:
  std::string operator/(const std::string& name) const { return (directory_ / name).string(); }

  Outcome sentences(const std::vector<std::string>& inputs, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"sentences", "--overwrite", "--output", *this / "out", "--input"};
    for (const std::string& input : inputs) arguments.push_back(*this / input);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program("prepare", arguments);
  }
  std::string text_of(const std::vector<std::string>& inputs, const std::vector<std::string>& more = {}) const {
    const Outcome outcome = sentences(inputs, more);
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
    return read_text(*this / "out");
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(fs::path(*this / "x").parent_path()))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

 private:
  TemporaryDirectory directory_;
};

/// Whether this build has no ICU, which it then says. A test is skipped for it.
bool has_no_icu() {
  const Setting setting;
  write_text(setting / "t", "One. Two.\n");
  const Outcome outcome = setting.sentences({"t"});
  if (outcome.code == 0) return false;
  CHECK(outcome.code == 2);
  CHECK(outcome.error ==
        "error: sentences: expected a build with ICU, got one without; hint: build with libicu-dev installed\n");
  CHECK(setting.files() == std::vector<std::string>{"t"});
  MESSAGE("SKIPPED: this build has no ICU");
  return true;
}

void check_refused(const Outcome& outcome, int code, const std::string& part) {
  CHECK(outcome.code == code);
  CHECK_MESSAGE(outcome.error.find("error: ") != std::string::npos, outcome.error);
  CHECK_MESSAGE(outcome.error.find(part) != std::string::npos, outcome.error);
}

void check_said(const Outcome& outcome, const std::string& part) {
  CHECK(outcome.code == 0);
  CHECK_MESSAGE(outcome.error.find(part) != std::string::npos, outcome.error);
}

constexpr const char* kPlain =
    "\nIt rains. Mr. Brown sleeps.\nHe  dreams.\r\n \t\n\n  \nA second document. It has two.\n\n . \n\n\u200b\n";
constexpr const char* kSplit = "It rains.\nMr. Brown sleeps.\nHe dreams.\n\nA second document.\nIt has two.\n\n.\n";

}  // namespace

TEST_CASE("prepare sentences: a line is a paragraph, and a blank line or a new file begins a document") {
  if (has_no_icu()) return;
  const Setting setting;
  write_text(setting / "a", kPlain);
  write_text(setting / "b", "Third. No line end");
  CHECK(setting.text_of({"a"}) == kSplit);
  CHECK(setting.text_of({"a", "b"}) == std::string(kSplit) + "\nThird.\nNo line end\n");
  const Outcome outcome = setting.sentences({"a", "b"});
  check_said(outcome,
             "\nwrote 4 documents, 8 sentences, " + std::to_string(fs::file_size(setting / "out")) + " bytes in ");
  CHECK(outcome.error.ends_with(" seconds\n"));
  CHECK(setting.files() == std::vector<std::string>{"a", "b", "out"});
}

TEST_CASE("prepare sentences: a line of JSON is a document, and its lines are paragraphs") {
  if (has_no_icu()) return;
  const Setting setting;
  const std::string json =
      "{\"text\": \"It rains. Mr. Brown sleeps.\\n\\nHe dreams.\"}\n\n{\"id\": 1, \"text\": \" \\n\"}\n"
      "{\"text\": \"A second document.\\r\\nIt has two.\"}\n{\"text\": \".\"}";
  for (const char* name : {"t.jsonl", "t.ndjson", "t.json"}) {
    write_text(setting / name, json);
    CHECK(setting.text_of({name}) == kSplit);
  }
  write_text(setting / "bad.jsonl", "{\"text\": \"It rains.\"}\n\n{\"txt\": \"a\"}\n");
  check_refused(setting.sentences({"bad.jsonl"}), 3, (setting / "bad.jsonl") + ":3: text: expected a string, got none");
}

TEST_CASE("prepare sentences --unwrap joins the lines of a paragraph, and a file is a document") {
  if (has_no_icu()) return;
  const Setting setting;
  write_text(setting / "book", "It\r\nrains. Mr.\r\nBrown sleeps.\r\n\r\nNo end\r\n  \r\n\r\nHe\r\n");
  write_text(setting / "other", "\n\nTwo.\nLines");
  CHECK(setting.text_of({"book", "other"}, {"--unwrap"}) ==
        "It rains.\nMr. Brown sleeps.\nNo end\nHe\n\nTwo.\nLines\n");
  write_text(setting / "t.jsonl", "{\"text\": \"It\\nrains. So\\n\\nit goes\\n\"}\n{\"text\": \"on. And\\non\"}\n");
  CHECK(setting.text_of({"t.jsonl"}, {"--unwrap"}) == "It rains.\nSo\nit goes\n\non.\nAnd on\n");
}

TEST_CASE("prepare sentences --unwrap refuses a paragraph that no memory should hold") {
  if (has_no_icu()) return;
  const Setting setting;
  std::string lines;
  for (int i = 0; i < (1 << 14) + 1; ++i) lines.append(4095, 'a').push_back('\n');
  write_text(setting / "endless", lines);
  check_refused(setting.sentences({"endless"}, {"--unwrap"}), 3,
                (setting / "endless") + ":16385: expected a paragraph of at most 67108864 bytes, got more; hint: ");
  CHECK(setting.files() == std::vector<std::string>{"endless"});
}

TEST_CASE("prepare sentences reads what is compressed") {
  if (has_no_icu()) return;
  const Setting setting;
  write_text(setting / "t.gz", support::gzipped(kPlain));
  CHECK(setting.text_of({"t.gz"}) == kSplit);
  write_text(setting / "cut.gz", support::gzipped(kPlain).substr(0, 40));
  check_refused(setting.sentences({"cut.gz"}), 3, "expected whole compressed data, got");
  write_text(setting / "t", kPlain);
  if (std::system(("zstd -q " + (setting / "t")).c_str()) == 0) {
    CHECK(setting.text_of({"t.zst"}) == kSplit);
  } else {
    MESSAGE("SKIPPED: there is no zstd");
  }
}

TEST_CASE("prepare sentences leaves out what is not UTF-8, with a warning, and refuses a NUL") {
  if (has_no_icu()) return;
  const Setting setting;
  write_text(setting / "odd", "It rains. It\n\n snows\xFF\xFE. It st\xC3ops.\n\xED\xA0\x80\nNow.\n");
  const Outcome outcome = setting.sentences({"odd"});
  CHECK(outcome.code == 0);
  // The line of bytes that are left out is blank, as for prepare corpus.
  CHECK(read_text(setting / "out") == "It rains.\nIt\n\nsnows.\nIt stops.\n\nNow.\n");
  check_said(outcome, "\nwarning: " + (setting / "odd") +
                          ":3: text: dropped 6 bytes that are not UTF-8, the first one in column 7; hint: ");
  fs::remove(setting / "out");
  write_text(setting / "nul", std::string("One.\nTwo\0", 9));
  check_refused(setting.sentences({"nul"}), 3, (setting / "nul") + ":2: expected text in UTF-8, got a NUL byte");
  CHECK(setting.files() == std::vector<std::string>{"nul", "odd"});
}

TEST_CASE("what prepare sentences says is in no output file, whichever standard descriptors are closed") {
  if (has_no_icu()) return;
  const Setting setting;
  write_text(setting / "odd", "It rains.\xFF It snows.\n");
  for (const std::string closed : {"2>&-", "<&- 2>&-", "<&- >&- 2>&-"}) {
    CAPTURE(closed);
    const std::string command = bertrand::paths::binary + "/prepare sentences --input " + (setting / "odd") +
                                " --overwrite --output " + (setting / "out") + " " + closed;
    CHECK(WEXITSTATUS(std::system(command.c_str())) == 0);
    CHECK(read_text(setting / "out") == "It rains.\nIt snows.\n");
  }
}

TEST_CASE("prepare sentences refuses what cannot be, and what was there stays") {
  if (has_no_icu()) return;
  const Setting setting;
  write_text(setting / "t", kPlain);
  write_text(setting / "out", "old");
  write_text(setting / "blank", "\n \n\xC2\xA0\n");
  check_refused(setting.sentences({"blank"}), 3, (setting / "blank") + ": text: expected sentences, got none");
  check_refused(setting.sentences({"t"}, {"--language", "klingon"}), 2,
                "--language: expected a code that ICU has, such as en, de, fr or zh, got klingon");
  check_refused(setting.sentences({"t", "out"}), 2, "another file than the input");
  check_refused(setting.sentences({"none"}), 3, "none: input: expected a file, got nothing there");
  write_text(setting / "bad.jsonl", "{\"text\": \"It rains.\"}\n[]\n");
  check_refused(setting.sentences({"t", "bad.jsonl"}), 3, "bad.jsonl:2");
  CHECK(read_text(setting / "out") == "old");
  CHECK(setting.files() == std::vector<std::string>{"bad.jsonl", "blank", "out", "t"});
  CHECK(setting.text_of({"t"}) == kSplit);
}

TEST_CASE("prepare sentences in another language takes its abbreviations") {
  if (has_no_icu()) return;
  const Setting setting;
  write_text(setting / "t", "Hr. Grün kam. Gen. Lee.\n");
  CHECK(setting.text_of({"t"}) == "Hr.\nGrün kam.\nGen. Lee.\n");
  CHECK(setting.text_of({"t"}, {"--language", "de"}) == "Hr. Grün kam.\nGen.\nLee.\n");
}

TEST_CASE("prepare sentences warns if most documents have one sentence only") {
  if (has_no_icu()) return;
  const Setting setting;
  write_text(setting / "t", "One.\n\nTwo.\n\nThree. Four.\n\nFive. Six. Seven.\n");
  const std::string warning = "\nwarning: " + (setting / "t") +
                              ": 2 of 4 documents have one sentence: pairs of such a document are all random; hint: ";
  check_said(setting.sentences({"t"}), warning);
  write_text(setting / "t", "One.\n\nTwo. More.\n\nThree. Four.\n\nFive. Six. Seven.\n");
  CHECK(setting.sentences({"t"}).error.find("warning") == std::string::npos);
}

TEST_CASE("prepare sentences stopped by SIGTERM leaves nothing and says so") {
  if (has_no_icu()) return;
  const Setting setting;
  REQUIRE(::mkfifo((setting / "pipe").c_str(), 0600) == 0);  // never ends, so that it is stopped while it reads
  const std::string program = bertrand::paths::binary + "/prepare", pipe = setting / "pipe", out = setting / "out";
  const pid_t child = fork();
  if (child == 0) {
    dup2(open((setting / "error").c_str(), O_WRONLY | O_CREAT, 0644), STDERR_FILENO);
    alarm(120);  // ends it if it never stops
    execl(program.c_str(), program.c_str(), "sentences", "--input", pipe.c_str(), "--output", out.c_str(), nullptr);
    _exit(127);
  }
  const int to = open(pipe.c_str(), O_RDWR | O_NONBLOCK);  // it reads nothing, but so no write ends the test
  const std::string text = "It rains. It stops.\n" + std::string(1 << 16, '\n');
  bool stopped = false;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    (void)!write(to, text.data(), text.size());
    if (!stopped && setting.files().size() > 2) stopped = kill(child, SIGTERM) == 0;  // its output has been begun
  }
  close(to);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
  const std::string error = read_text(setting / "error");  // it may have read all that there was
  CHECK((error == "interrupted while cutting into sentences: nothing was written; hint: run the command again\n" ||
         error == pipe + ": interrupted while it waited for more to read\n"));
  CHECK(setting.files() == std::vector<std::string>{"error", "pipe"});
}

TEST_CASE("prepare corpus finds as many documents and sentences as prepare sentences has written") {
  if (has_no_icu()) return;
  const Setting setting;
  write_text(setting / "v", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  std::string text;  // what only an accent, a control character or a blank is made of must not count
  for (const char* line : {"A b. C!", "\u0301", "\u200b. \u00ad", "\ufeff", "\x01", "", "e\u0301. \u2028x", " \u3000 ",
                           "Mr. X", "\x7f", "", "\xE4\xBB\x8A\xE3\x80\x82\xE5\xA4\xA9", "...", "\u0300 \u0301. A"})
    text.append(line).push_back('\n');
  write_text(setting / "t", text);
  const Outcome written = setting.sentences({"t"});
  REQUIRE_MESSAGE(written.code == 0, written.error);
  const Outcome corpus = run_program(
      "prepare", {"corpus", "--vocab-file", setting / "v", "--input", setting / "out", "--output", setting / "corpus"});
  REQUIRE_MESSAGE(corpus.code == 0, corpus.error);
  const auto counts = [](const std::string& said) {
    const std::size_t begin = said.find("wrote ");
    return said.substr(begin, said.find(" sentences", begin) - begin);
  };
  CHECK(counts(written.error).starts_with("wrote 4 documents, "));
  CHECK(counts(written.error) == counts(corpus.error));
}
