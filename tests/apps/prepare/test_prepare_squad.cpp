#include <doctest/doctest.h>

#include <fstream>

#include "io/sha256.h"
#include "support/program.h"

using namespace bertrand;
using support::run_program;

TEST_CASE("answer-span features equal those of run_squad.py record by record with any number of threads") {
  const std::string data = paths::shared + "/data/";
  if (!std::filesystem::exists(data + "squad/features_sha256.jsonl")) {
    MESSAGE("SKIPPED: no data in " << data);
    return;
  }
  int threads = 0;
  for (const auto& of : support::read_json_lines(data + "squad/features_sha256.jsonl")) {
    threads = threads % 3 + 1;
    CAPTURE(of.dump());
    const support::TemporaryDirectory directory;
    std::vector<std::string> flags = {"squad",
                                      "--input",
                                      data + "squad/small/" + of.at("data").get<std::string>(),
                                      "--output",
                                      directory / "features.tfrecord",
                                      "--vocab-file",
                                      data + "vocab/" + of.at("vocab").get<std::string>() + "/vocab.txt",
                                      "--threads",
                                      std::to_string(threads)};
    const auto add_number = [&](const std::string& flag, const char* key) {
      flags.insert(flags.end(), {flag, std::to_string(of.at(key).get<int>())});
    };
    add_number("--max-seq-length", "max_seq_length");
    add_number("--doc-stride", "doc_stride");
    add_number("--max-query-length", "max_query_length");
    if (of.at("cased")) flags.push_back("--cased");
    if (of.at("training")) flags.push_back("--training");
    if (of.at("version_2")) flags.push_back("--version-2");
    REQUIRE(run_program("prepare", flags).code == 0);
    const support::Outcome dump = run_program("prepare", {"dump", directory / "features.tfrecord"});
    REQUIRE(dump.code == 0);
    CHECK(bertrand::io::sha256(dump.out) == of.at("sha256").get<std::string>());
  }
}

TEST_CASE("a failed prepare squad leaves no output") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "data", R"({"data": [{"paragraphs": [{"context": "alpha", "qas":
      [{"id": "1", "question": "q", "answers": [{"text": "alpha", "answer_start": 3}]}]}]}]})");
  support::write_text(directory / "vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nalpha\n");
  const support::Outcome outcome =
      run_program("prepare", {"squad", "--training", "--input", directory / "data", "--output", directory / "out",
                              "--vocab-file", directory / "vocab"});
  CHECK(outcome.code == 3);
  CHECK(outcome.error ==
        "error: " + (directory / "data").string() +
            ": question 1: answer_start: expected an answer within the context's 5 characters, got 3 to 8\n");
  CHECK_FALSE(std::filesystem::exists(directory / "out"));
}

TEST_CASE("prepare squad keeps questions whose answer has no word and names the first one") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "data", R"({"data": [{"paragraphs": [{"context": "alpha beta", "qas": [
      {"id": "1", "question": "q", "answers": [{"text": "beta", "answer_start": 6}]},
      {"id": "2", "question": "q", "answers": [{"text": "", "answer_start": 6}]}]}]}]})");
  support::write_text(directory / "vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nalpha\n");
  std::vector<std::string> flags = {"squad",           "--input",      directory / "data", "--output",
                                    directory / "out", "--vocab-file", directory / "vocab"};
  const std::string wrote = "wrote 2 features of 2 questions, 0 left out\n";
  CHECK(run_program("prepare", flags).error == wrote);
  flags.insert(flags.end(), {"--training", "--overwrite"});
  CHECK(run_program("prepare", flags).error ==
        "warning: " + (directory / "data").string() +
            ": questions whose answer has no word, kept all the same: 1, the first 2\n" + wrote);
}

TEST_CASE("prepare squad says in one line which question it leaves out, whatever its id and its text are") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "data", R"({"data": [{"paragraphs": [{"context": "alpha beta", "qas": [
      {"id": "x\n\u001b[31m", "question": "q", "answers": [{"text": "be\u0007ta", "answer_start": 0}]},
      {"id": "2", "question": "q", "answers": [{"text": "beta", "answer_start": 6}]}]}]}]})");
  support::write_text(directory / "vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nalpha\n");
  const support::Outcome outcome =
      run_program("prepare", {"squad", "--training", "--input", directory / "data", "--output", directory / "out",
                              "--vocab-file", directory / "vocab"});
  CHECK(outcome.code == 0);
  CHECK(outcome.error == "warning: " + (directory / "data").string() +
                             ": question x  [31m: Could not find answer: 'alpha' vs. 'be ta'\n"
                             "wrote 1 feature of 1 question, 1 left out\n");
}

TEST_CASE("prepare squad without a question to write is refused and leaves no output") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nalpha\n");
  const std::string data = directory / "data";
  const auto refusal = [&](const std::string& questions) {
    support::write_text(data, R"({"data": [{"paragraphs": [{"context": "alpha beta", "qas": [)" + questions + "]}]}]}");
    const support::Outcome outcome = run_program("prepare", {"squad", "--training", "--input", data, "--output",
                                                             directory / "out", "--vocab-file", directory / "vocab"});
    CHECK(outcome.code == 3);
    CHECK_FALSE(std::filesystem::exists(directory / "out"));
    return outcome.error;
  };
  CHECK(refusal("") == "error: " + data + ": expected at least one question, got none\n");
  CHECK(refusal(R"({"id": "1", "question": "q", "answers": [{"text": "beta", "answer_start": 0}]})")
            .ends_with("error: " + data +
                       ": expected at least one question whose answer is where answer_start says, got none\n"));
}

TEST_CASE("prepare squad refuses a pipe or a device and says what to do") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nalpha\n");
  const support::Outcome outcome = run_program(
      "prepare", {"squad", "--input", "/dev/null", "--output", directory / "out", "--vocab-file", directory / "vocab"});
  CHECK(outcome.code == 3);
  CHECK(outcome.error == "error: /dev/null: expected a regular file, got a pipe or device; hint: put it into a file\n");
}

TEST_CASE("the memory of prepare squad does not grow with the file") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nalpha\n");
  std::string context = "alpha";
  while (context.size() < std::size_t{1} << 20) context += ' ' + std::string(500, 'x');  // few pieces of many bytes
  const auto peak = [&](int paragraphs) {
    {  // never whole in this process, whose memory is the first that is counted of a new one
      std::ofstream data(directory / "data");
      data << R"({"data": [{"paragraphs": [)";
      for (int i = 0; i < paragraphs; ++i)
        data << (i > 0 ? "," : "") << R"({"qas": [{"id": ")" << i
             << R"(", "question": "alpha", "answers": []}], "context": ")" << context << "\"}";
      data << "]}]}";
    }
    const support::Outcome outcome =
        run_program("prepare", {"squad", "--input", directory / "data", "--output", directory / "out", "--vocab-file",
                                directory / "vocab", "--overwrite"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    const std::string questions = " features of " + std::to_string(paragraphs) + " questions, 0 left out\n";
    CHECK(outcome.error.ends_with(questions));
    return outcome.peak_bytes;
  };
  const std::size_t small = peak(12), large = peak(60);
  CHECK(large < small + (std::size_t{12} << 20));
}
