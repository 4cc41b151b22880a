#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/conversation.h"
#include "support/gzip.h"
#include "support/program.h"
#include "support/soon.h"

using support::Outcome;
using support::read_text;
using support::run_program;
using support::TemporaryDirectory;
using support::write_text;
namespace fs = std::filesystem;

namespace {

const std::string kVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##a\n##b\n[\n]\nmask\n";
const std::string kText = "a b\nab c\n\nc c c\na\n\nb a\n";

/// A directory with a vocabulary v and a text t.
class Setting {
 public:
  Setting() {
    write_text(directory_ / "v", kVocabulary);
    write_text(directory_ / "t", kText);
  }
  std::string operator/(const std::string& name) const { return (directory_ / name).string(); }

  Outcome records(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"records", "--vocab-file", *this / "v", "--input", *this / "t"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program("prepare", arguments);
  }

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator((directory_ / "v").parent_path()))
      names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

 private:
  TemporaryDirectory directory_;
};

void check_refused(const Outcome& outcome, int code, const std::string& part) {
  CHECK(outcome.code == code);
  CHECK_MESSAGE(outcome.error.find(part) != std::string::npos, outcome.error);
  const std::size_t error = outcome.error.find("error: ");
  REQUIRE(error != std::string::npos);
  CHECK(outcome.error.find('\n', error) == outcome.error.size() - 1);  // one line, the last
}

}  // namespace

TEST_CASE("prepare tokens prints a line of ids for every line, with any number of threads") {
  const Setting setting;
  write_text(setting / "lines", "a ab\n\n x \r\n[MASK]\nno end a");
  const std::string expected = "5 5 9\n\n1\n10 12 11\n1 1 5\n";
  for (const char* threads : {"1", "2", "5"}) {
    const Outcome outcome =
        run_program("prepare", {"tokens", "--vocab-file", setting / "v", "--threads", threads, setting / "lines"});
    CHECK(outcome.code == 0);
    CHECK(outcome.out == expected);
    CHECK(outcome.error.empty());
  }
  const Outcome kept =
      run_program("prepare", {"tokens", "--vocab_file", setting / "v", "--with_special_tokens", setting / "lines"});
  CHECK(kept.out == "5 5 9\n\n1\n4\n1 1 5\n");
  write_text(setting / "empty", "");
  const Outcome empty = run_program("prepare", {"tokens", "--vocab-file", setting / "v", setting / "empty"});
  CHECK(empty.code == 0);
  CHECK(empty.out.empty());
}

TEST_CASE("prepare tokens reads the text of lines of JSON as the other commands do") {
  const Setting setting;
  write_text(setting / "lines.jsonl", " {\"text\": \"a ab\"}\n\n{\"text\": \"no\\nend a\", \"id\": 7}\n");
  for (const char* threads : {"1", "3"})
    CHECK(
        run_program("prepare", {"tokens", "--vocab-file", setting / "v", "--threads", threads, setting / "lines.jsonl"})
            .out == "5 5 9\n\n1 1 5\n");
  write_text(setting / "lines.jsonl", "{\"text\": \"a\"}\n{\"text\": \"a\"}\na\n");
  for (const char* threads : {"1", "3"})
    CHECK(
        run_program("prepare", {"tokens", "--vocab-file", setting / "v", "--threads", threads, setting / "lines.jsonl"})
            .error.find((setting / "lines.jsonl") + ":3:") != std::string::npos);
}

TEST_CASE("prepare tokens says where the first bytes are that are not UTF-8") {
  const Setting setting;
  write_text(setting / "lines", "a\nb \xFF\xFF c\na\xED\xA0\x80\n");
  const Outcome outcome = run_program("prepare", {"tokens", "--vocab-file", setting / "v", setting / "lines"});
  CHECK(outcome.out == "5\n6 7\n5\n");
  CHECK(outcome.error == "warning: " + (setting / "lines") +
                             ":2: text: dropped 5 bytes that are not UTF-8, the first one in column 3; hint: iconv "
                             "turns other encodings into UTF-8\n");
}

TEST_CASE("text that is lower-cased for a vocabulary with capitals is warned of, and --cased keeps its capitals") {
  const Setting setting;
  write_text(setting / "cased", read_text(setting / "v") + "Ab\n");
  write_text(setting / "lines", "Ab\n");
  const auto tokens = [&](const std::vector<std::string>& flags) {
    return run_program("prepare", support::with_defaults({"tokens", setting / "lines"}, flags));
  };
  const Outcome lower = tokens({"--vocab-file", setting / "cased"});
  CHECK(lower.error == "warning: " + (setting / "cased") +
                           ": words with capitals, which no text becomes, since it is lower-cased; hint: --cased\n");
  const Outcome cased = tokens({"--vocab-file", setting / "cased", "--cased"});
  CHECK(cased.error.empty());
  CHECK(cased.out != lower.out);
}

TEST_CASE("documents that hardly have a next sentence are warned of") {
  const Setting setting;
  write_text(setting / "one.ndjson", "{\"text\": \"a b ab c\"}\n{\"text\": \"c c ab\"}\n");
  for (const char* command : {"corpus", "records"}) {
    const Outcome outcome = run_program("prepare", {command, "--vocab-file", setting / "v", "--input",
                                                    setting / "one.ndjson", "--output", setting / command});
    CHECK(outcome.code == 0);
    CHECK(outcome.error.find("warning: " + (setting / "one.ndjson") + ": 2 documents with 2 sentences: ") !=
          std::string::npos);
  }
  write_text(setting / "two.json", "{\"text\": \"a b\\nab c\"}\n{\"text\": \"c c\\nab\"}\n");
  const Outcome outcome = run_program("prepare", {"records", "--vocab-file", setting / "v", "--input",
                                                  setting / "two.json", "--output", setting / "r"});
  CHECK(outcome.code == 0);
  CHECK(outcome.error.find("warning") == std::string::npos);
}

TEST_CASE("prepare tokens refuses a NUL with its line after all lines of the blocks before it") {
  const Setting setting;
  const std::string lines = std::string((1 << 20) - 2, 'a') + "\n";  // a block of one thread
  write_text(setting / "lines", lines + std::string("a\nb\0\n", 5));
  const Outcome outcome =
      run_program("prepare", {"tokens", "--vocab-file", setting / "v", "--threads", "1", setting / "lines"});
  check_refused(outcome, 3, (setting / "lines") + ":3: expected text in UTF-8, got a NUL byte");
  CHECK(outcome.out == "1\n");
}

TEST_CASE("prepare records and dump: files appear complete, and a dump shows sorted features") {
  const Setting setting;
  const Outcome outcome =
      setting.records({"--output", setting / "x", setting / "y", "--max-seq-length", "8", "--dupe-factor", "2"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(setting.files() == std::vector<std::string>{"t", "v", "x", "y"});
  const Outcome dump = run_program("prepare", {"dump", setting / "x"});
  CHECK(dump.code == 0);
  CHECK(dump.out.starts_with("input_ids:2 "));
  CHECK(dump.out.find("\nmasked_lm_weights:1 ") != std::string::npos);
  CHECK(std::ranges::count(dump.out, '\n') % 7 == 0);
}

TEST_CASE("prepare records refuses what cannot be, and leaves nothing") {
  const Setting setting;
  write_text(setting / "empty", "");
  write_text(setting / "blank", "\n \n\xC2\xA0\n");
  check_refused(setting.records({"--output", setting / "t"}), 2, "expected another file than the input");
  check_refused(setting.records({"--output", setting / "v"}), 2, "expected another file than the input");
  check_refused(setting.records({"--output", setting / "r", setting / "r"}), 2, "twice");
  check_refused(setting.records({"--output", "not-there", "./not-there"}), 2,
                "--output: expected different files, got ./not-there twice");
  check_refused(setting.records({"--output", setting / "no/r"}), 5, "expected an existing directory");
  check_refused(setting.records({"--output", setting / "r", "--max-seq-length", "4"}), 2,
                "--max-seq-length: expected a whole number");
  check_refused(setting.records({"--output", setting / "r", "--masked-lm-prob", "nan"}), 2, "--masked-lm-prob");
  check_refused(setting.records({"--output", setting / "r", "--dupe-faktor", "2"}), 2, "did you mean --dupe-factor?");
  std::filesystem::create_symlink(setting / "t", setting / "link");
  check_refused(setting.records({"--output", setting / "link"}), 2, "--output: expected another file than the input");
  write_text(setting / "other", "");
  std::filesystem::remove(setting / "link");
  std::filesystem::create_symlink(setting / "other", setting / "link");
  REQUIRE(::mkfifo((setting / "pipe").c_str(), 0600) == 0);
  for (const std::string& output : {setting / "link", setting / "pipe"})
    check_refused(setting.records({"--output", output}), 2, "expected a file of its own, got the link, pipe or device");
  for (const char* name : {"link", "other", "pipe"}) std::filesystem::remove(setting / name);
  for (const char* input : {"empty", "blank"}) {
    check_refused(run_program("prepare", {"records", "--vocab-file", setting / "v", "--input", setting / input,
                                          "--output", setting / "r"}),
                  3, "expected sentences");
  }
  check_refused(run_program("prepare", {"records", "--vocab-file", setting / "none", "--input", setting / "t",
                                        "--output", setting / "r"}),
                3, (setting / "none") + ": open: No such file or directory");
  check_refused(run_program("prepare", {"records", "--vocab-file", setting / "t", "--input", setting / "t", "--output",
                                        setting / "r"}),
                3, "vocabulary: expected");
  check_refused(run_program("prepare", {"records", "--vocab-file", setting / "v", "--input", setting / "none",
                                        "--output", setting / "r"}),
                3, "none");
  CHECK(setting.files() == std::vector<std::string>{"blank", "empty", "t", "v"});
}

TEST_CASE("prepare records stopped by SIGTERM while it writes leaves nothing and says so") {
  const Setting setting;
  const std::string program = bertrand::paths::binary + "/prepare";
  const std::string v = setting / "v", t = setting / "t", r = setting / "r";
  const pid_t child = fork();
  if (child == 0) {
    dup2(open((setting / "error").c_str(), O_WRONLY | O_CREAT, 0644), STDERR_FILENO);
    alarm(120);  // ends it if it never writes
    execl(program.c_str(), program.c_str(), "records", "--vocab-file", v.c_str(), "--input", t.c_str(), "--output",
          r.c_str(), "--dupe-factor", "5000000", nullptr);
    _exit(127);
  }
  const auto is_writing = [&] {
    return std::ranges::any_of(setting.files(), [](const std::string& name) { return name.starts_with("r.tmp-"); });
  };
  while (!is_writing() && waitpid(child, nullptr, WNOHANG) == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  kill(child, SIGTERM);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
  CHECK(setting.files() == std::vector<std::string>{"error", "t", "v"});
  CHECK(read_text(setting / "error").find("interrupted while writing records: nothing was written") !=
        std::string::npos);
}

TEST_CASE("prepare vocab stopped by SIGTERM waits no longer for the end of a pipe") {
  const Setting setting;
  REQUIRE(::mkfifo((setting / "pipe").c_str(), 0600) == 0);
  support::Conversation work("prepare", {"vocab", "--input", setting / "pipe", "--output", setting / "out"});
  int writer = -1;
  REQUIRE(support::soon([&] {  // when it is read
    writer = ::open((setting / "pipe").c_str(), O_WRONLY | O_NONBLOCK);
    return writer >= 0;
  }));
  work.signal(SIGTERM);
  CHECK(work.finish() == 75);
  ::close(writer);
}

TEST_CASE("prepare records takes one document with a warning, and odd input without trouble") {
  const Setting setting;
  write_text(setting / "one", "a b\nc\n");
  const Outcome one = run_program(
      "prepare", {"records", "--vocab-file", setting / "v", "--input", setting / "one", "--output", setting / "r"});
  CHECK(one.code == 0);
  CHECK(one.error.find("warning: " + (setting / "one") + ": documents: expected at least 2, got 1") !=
        std::string::npos);
  write_text(setting / "odd", "ab\n\xED\xA0\x80\n\xCC\x81\xCC\x81\n" + std::string(3 << 20, 'a') + "\n" +
                                  std::string(1 << 20, ' ') + "a\n\nb\n");
  const Outcome odd = run_program("prepare", {"records", "--vocab-file", setting / "v", "--input", setting / "odd",
                                              "--output", setting / "s", "--max-predictions-per-seq", "500"});
  CHECK(odd.code == 0);
  CHECK(odd.error.find(":2: text: dropped 3 bytes") != std::string::npos);
}

TEST_CASE("prepare records warns if records have fewer masked tokens than their share") {
  const Setting setting;
  const Outcome few = setting.records({"--output", setting / "r", "--max-seq-length", "512"});
  CHECK(few.code == 0);
  CHECK(
      few.error.starts_with("warning: --max-predictions-per-seq: 20 of an example of 512 tokens, of which "
                            "--masked-lm-prob 0.15 would take 77\n"));
  const Outcome usual = setting.records({"--output", setting / "s"});
  CHECK(usual.error.find("--max-predictions-per-seq") == std::string::npos);
}

TEST_CASE("prepare dump names file and offset of a bad record, or skips it") {
  const Setting setting;
  REQUIRE(setting.records({"--output", setting / "r", "--max-seq-length", "8", "--dupe-factor", "1"}).code == 0);
  std::string bytes = read_text(setting / "r");
  bytes[20] = static_cast<char>(bytes[20] ^ 1);
  write_text(setting / "r", bytes);
  check_refused(run_program("prepare", {"dump", setting / "r"}), 3,
                (setting / "r") + "@0: record data crc: expected 0x");
  const Outcome skipped = run_program("prepare", {"dump", "--on-corrupt", "skip", setting / "r"});
  CHECK(skipped.code == 0);
  CHECK(skipped.error.find("warning: " + (setting / "r") + "@0") != std::string::npos);
  CHECK(skipped.error.ends_with("; skipped 1 corrupt place of this file\n"));
}

TEST_CASE("prepare vocab learns the same vocabulary with any number of threads, and prepare uses it") {
  const Setting setting;
  std::string first;
  for (const char* threads : {"1", "3"}) {
    const Outcome outcome = run_program("prepare", {"vocab", "--input", setting / "t", "--output", setting / "learnt",
                                                    "--size", "12", "--threads", threads, "--overwrite"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    if (first.empty()) first = read_text(setting / "learnt");
    CHECK(read_text(setting / "learnt") == first);
  }
  CHECK(first == "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##b\n");  // "ab" occurs only once
  const Outcome tokens = run_program("prepare", {"tokens", "--vocab-file", setting / "learnt", setting / "t"});
  CHECK(tokens.out == "5 6\n5 8 7\n\n7 7 7\n5\n\n6 5\n");
  check_refused(run_program("prepare", {"vocab", "--input", setting / "t", "--output", setting / "w", "--size", "6"}),
                2, "--size: expected at least 9");
  check_refused(run_program("prepare", {"vocab", "--input", setting / "t", "--output", setting / "t", "--size", "60"}),
                2, "another file than the input");
  write_text(setting / "empty", "");
  check_refused(
      run_program("prepare", {"vocab", "--input", setting / "empty", "--output", setting / "w", "--size", "60"}), 3,
      (setting / "empty") + ": text: expected words, got none");
  write_text(setting / "packed", std::string("\x1f\x8b\b\0\0\n\0", 7));
  check_refused(
      run_program("prepare", {"vocab", "--input", setting / "packed", "--output", setting / "w", "--size", "60"}), 3,
      (setting / "packed") + ": expected whole compressed data, got unexpected end of file");
}

TEST_CASE("prepare vocab says what the limit of the alphabet left out, and does not call it rare pairs") {
  const Setting setting;
  const auto learn = [&](const char* limit) {
    return run_program("prepare", {"vocab", "--input", setting / "t", "--output", setting / "learnt", "--size", "60",
                                   "--limit-alphabet", limit, "--overwrite"});
  };
  CHECK(learn("2").error.ends_with(
      "\nwarning: --limit-alphabet 2: 1 rarer character, 27.3 % of the text's, and all words with them were left out; "
      "hint: a larger one keeps them\n"
      "wrote 7 tokens learnt from 4 different words; what is left of the text has no more frequent pairs\n"));
  const std::string all = learn("3").error;
  CHECK(all.find("warning") == std::string::npos);
  CHECK(all.ends_with("\nwrote 9 tokens learnt from 4 different words; the text has no more frequent pairs\n"));
}

TEST_CASE("prepare vocab counts the bytes of a text that are not UTF-8 and names the first") {
  const Setting setting;
  // The first block of 4 MiB has valid lines only.
  write_text(setting / "odd", std::string((4 << 20) / 2, 'a').append("\n").append((4 << 20) / 2, 'b') +
                                  "\nab ab\nab\xff\xfe\n\x80 ab\n");
  for (const char* threads : {"1", "3"}) {
    const Outcome outcome = run_program("prepare", {"vocab", "--input", setting / "odd", "--output", setting / "learnt",
                                                    "--size", "60", "--threads", threads, "--overwrite"});
    CHECK(outcome.code == 0);
    const std::string warning = "warning: " + (setting / "odd") +
                                ":4: text: dropped 3 bytes that are not UTF-8, the first one in column 3; hint: iconv "
                                "turns other encodings into UTF-8\n";
    CHECK_MESSAGE(outcome.error.find(warning) != std::string::npos, outcome.error);
  }
}

TEST_CASE("prepare vocab learns from lines of JSON what it learns from the text in them") {
  const Setting setting;
  const auto learn = [&](const std::string& input, const char* threads) {
    return run_program("prepare", {"vocab", "--input", setting / input, "--output", setting / "learnt", "--size", "60",
                                   "--min-frequency", "1", "--threads", threads, "--overwrite"});
  };
  REQUIRE(learn("t", "1").code == 0);
  const std::string expected = read_text(setting / "learnt");
  write_text(setting / "t.jsonl",
             "{\"text\": \"a b\\nab c\\n\"}\n\n{\"id\": \"x\", \"text\": \"c c c\\na\"}\n{\"text\": \"b a\"}");
  write_text(setting / "t.jsonl.gz", support::gzipped(read_text(setting / "t.jsonl")));
  for (const char* name : {"t.jsonl", "t.jsonl.gz"}) {
    for (const char* threads : {"1", "3"}) {
      REQUIRE(learn(name, threads).code == 0);
      CHECK(read_text(setting / "learnt") == expected);
    }
  }
  // The bad line is in the second block of 4 MiB.
  const std::string long_line = "{\"text\": \"" + std::string((4 << 20) / 2, 'a') + "\"}\n";
  write_text(setting / "bad.jsonl", long_line + "\n" + long_line + "{\"txt\": \"a\"}\n");
  for (const char* threads : {"1", "3"})
    check_refused(learn("bad.jsonl", threads), 3, (setting / "bad.jsonl") + ":4: text: expected a string, got none");
  write_text(setting / "nul.jsonl", "{\"text\": \"a\\u0000b\"}\n");
  check_refused(learn("nul.jsonl", "1"), 3, (setting / "nul.jsonl") + ":1: expected text without \\u0000, got one");
}

TEST_CASE("prepare vocab's help says by which rule it merges") {
  CHECK(run_program("prepare", {"--help"}).out.find("merges by frequency") != std::string::npos);
}

TEST_CASE("a command that is missing or unknown is a usage error") {
  CHECK(run_program("prepare", {}).code == 2);
  CHECK(run_program("prepare", {"token"}).code == 2);
  CHECK(run_program("prepare", {"tokens", "--help"}).code == 0);
}
