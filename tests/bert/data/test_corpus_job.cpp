// A job of prepare corpus: what it says while it works, what it goes on with, and what a power failure leaves of it.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "bert/data/corpus_writer.h"
#include "bert/data/mapped_corpus.h"
#include "io/error.h"
#include "support/faulty_files.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::data;
using support::read_text;
using support::TemporaryDirectory;
using support::write_text;
namespace fs = std::filesystem;

namespace {

text::Tokenizer tokenizer_of_letters() {
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) words += std::string(1, c) + "\n";
  return text::Tokenizer(text::Vocabulary::parse(words, "vocab.txt"));
}

/// Documents of three sentences of eight bytes each, and a blank line after each: 25 bytes.
std::string some_text(int documents) {
  std::string text;
  for (int d = 0; d < documents; ++d) {
    for (int s = 0; s < 3; ++s)
      for (int w = 0; w < 4; ++w)
        text += std::string(1, static_cast<char>('a' + (d + s + w) % 26)) + (w == 3 ? "\n" : " ");
    text += "\n";
  }
  return text;
}

/// What is in a directory, by name.
std::map<std::string, std::string> contents(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) files[entry.path().filename()] = read_text(entry.path());
  return files;
}

}  // namespace

TEST_CASE("progress counts the text of all inputs, and a corpus that goes on counts from where it was") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of_letters();
  write_text(directory / "a", some_text(40));
  write_text(directory / "b", some_text(30));
  const std::uint64_t all = 70 * 25;
  std::vector<std::uint64_t> taken;
  CorpusJob job{.inputs = {directory / "a", directory / "b"},
                .output = directory / "once",
                .progress = [&](std::uint64_t bytes) { taken.push_back(bytes); },
                .block_bytes = 300};
  write_corpus(job, tokenizer);
  CHECK(taken.size() >= 6);
  CHECK(std::ranges::adjacent_find(taken, std::greater_equal()) == taken.end());
  CHECK(taken.back() == all);

  for (const std::size_t blocks : {2, 5}) {  // of 300 bytes: in the first and in the second input
    CAPTURE(blocks);
    taken.clear();
    job.output = directory / ("twice" + std::to_string(blocks));
    job.stop = [&] { return taken.size() + 1 == blocks; };
    job.progress = [&](std::uint64_t bytes) {
      taken.push_back(bytes);
      if (taken.size() == blocks) fail(Failure::interrupted, "stopped");
    };
    CHECK(support::refusal(Failure::interrupted, [&] { write_corpus(job, tokenizer); }) == "stopped");
    const std::uint64_t begun = taken.back();
    job.stop = nullptr;
    job.progress = [&](std::uint64_t bytes) { taken.push_back(bytes); };
    CHECK(write_corpus(job, tokenizer).begun_bytes == begun);
    CHECK(std::ranges::adjacent_find(taken, std::greater_equal()) == taken.end());
    CHECK(taken.back() == all);
    CHECK(contents(job.output) == contents(directory / "once"));
  }
}

TEST_CASE("a job that ends without a warning goes on at the last place that it saved, one every so many bytes") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of_letters();
  write_text(directory / "t", some_text(100));
  std::vector<std::uint64_t> taken;
  CorpusJob job{.inputs = {directory / "t"},
                .output = directory / "c",
                .progress =
                    [&](std::uint64_t bytes) {
                      taken.push_back(bytes);
                      if (taken.size() == 5) fail(Failure::interrupted, "killed");
                    },
                .save_bytes = 600,
                .block_bytes = 300};
  CHECK(support::refusal(Failure::interrupted, [&] { write_corpus(job, tokenizer); }) == "killed");
  std::uint64_t saved = 0;
  for (const std::uint64_t bytes : taken)
    if (bytes - saved >= 600) saved = bytes;
  REQUIRE(saved > 600);
  REQUIRE(saved < taken.back());
  job.progress = nullptr;
  CHECK(write_corpus(job, tokenizer).begun_bytes == saved);
}

TEST_CASE("a sentence may lie behind a billion tokens, and has fewer than two billion of its own") {
  const std::uint64_t far = std::uint64_t{1} << 30, most = (std::uint64_t{1} << 31) - 1;
  const std::uint64_t places[] = {far, far + 5, far + 5 + most, far + 5 + 2 * most + 1};
  const Sentences sentences{.places = places, .part = "part", .part_tokens = std::uint64_t{1} << 33};
  CHECK(sentences.tokens(0) == 5);
  CHECK(sentences.tokens(1) == static_cast<std::int64_t>(most));
  CHECK(support::refusal(Failure::input, [&] { sentences.tokens(2); }) ==
        "part: document 0, sentence 2: expected tokens in order among 8589934592, got 3221225476 to 5368709124; hint: "
        "make the corpus again");
}

TEST_CASE("a job that says what cannot be of its place is not gone on with") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of_letters();
  write_text(directory / "t", some_text(30));
  CorpusJob job{.inputs = {directory / "t"},
                .output = directory / "c",
                .progress = [](std::uint64_t) { fail(Failure::interrupted, "stopped"); },
                .stop = [] { return true; }};
  CHECK(support::refusal(Failure::interrupted, [&] { write_corpus(job, tokenizer); }) == "stopped");
  job.progress = nullptr, job.stop = nullptr;
  const fs::path file = directory / "c.partial" / "progress.json";
  const std::string good = read_text(file);
  using Json = nlohmann::ordered_json;
  const auto refusal = [&](const std::function<void(Json&)>& change) {
    Json json = Json::parse(good);
    change(json);
    write_text(file, json.dump());
    return support::refusal(Failure::input, [&] { write_corpus(job, tokenizer); });
  };
  CHECK(refusal([](Json& json) { json["file"] = 1; }).find("progress.json: file: ") != std::string::npos);
  CHECK(refusal([](Json& json) {
          json["bytes"] = 1000;  // of 750
        }).starts_with((directory / "t").string() + ": text: expected "));
  for (const Json& numbers : {Json{0, 0}, Json{0, 0, 0, 0}, Json{0, 0, "x"}, Json{0, 0, -1}})
    CHECK(refusal([&](Json& json) { json["invalid_bytes"] = numbers; }).find("progress.json: invalid_bytes: ") !=
          std::string::npos);
  CHECK(refusal([](Json& json) { json["warnings"] = Json::array({3}); }).find("progress.json: warnings: ") !=
        std::string::npos);
  CHECK(refusal([](Json& json) {
          json["manifest"]["shards"] = Json::array();
          for (const char* sum : {"tokens", "sentences", "documents"}) json["manifest"][sum] = 0;
        }).find("progress.json: manifest: shards: ") != std::string::npos);
  CHECK(!fs::exists(job.output));
  CHECK(refusal([](Json&) {}) == "");
  CHECK(fs::exists(job.output));
}

TEST_CASE("text without a word makes no corpus, and no folder is made for one") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of_letters();
  write_text(directory / "blank", "\n \n\n");
  write_text(directory / "empty", "");
  for (const char* name : {"blank", "empty"})
    CHECK(support::refusal(Failure::input, [&] {
            write_corpus({.inputs = {directory / name}, .output = directory / "c"}, tokenizer);
          }).starts_with((directory / name).string() + ": text: "));
  CHECK(!fs::exists(directory / "c"));
  CHECK(!fs::exists(directory / "c.partial"));
  write_text(directory / "t", some_text(3));
  CHECK(support::refusal(Failure::usage, [&] {
          write_corpus({.inputs = {directory / "t"}, .output = directory / "none" / "c"}, tokenizer);
        }).starts_with("--output: " + (directory / "none").string() + ": "));
}

TEST_CASE("a last shard that no document is left for is not made") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of_letters();
  std::string lines = "a b\n\n";
  for (int i = 0; i < 100; ++i) lines += "c d e f\n";
  write_text(directory / "t", lines);
  const CorpusResult result =
      write_corpus({.inputs = {directory / "t"}, .output = directory / "c", .shards = 4}, tokenizer);
  CHECK(result.manifest.shards.size() == 1);
  CHECK(contents(directory / "c").size() == 4);  // the shard's three files and the manifest
  const MappedCorpus corpus({directory / "c"}, tokenizer);
  CHECK(corpus.documents() == 2);
  CHECK(corpus.sentences() == 101);
  CHECK(corpus.tokens() == 402);
}

TEST_CASE("after a power failure at any moment a corpus is whole or not there, and it is there once it is made") {
  const TemporaryDirectory directory, inputs;
  const text::Tokenizer tokenizer = tokenizer_of_letters();
  write_text(inputs / "t", some_text(12));
  support::RecordingFiles files(directory / "");
  const CorpusJob job{.inputs = {inputs / "t"}, .output = directory / "c", .shards = 2};
  write_corpus(job, tokenizer, files);
  const auto expected = contents(job.output);
  REQUIRE(expected.size() == 7);
  for (std::size_t calls = 0; calls <= files.calls(); ++calls)
    for (const support::Lost lost :
         {support::Lost::nothing, support::Lost::data, support::Lost::half_of_data, support::Lost::everything}) {
      CAPTURE(calls);
      const TemporaryDirectory disk;
      files.restore(calls, lost, disk / "");
      if (fs::exists(disk / "c")) CHECK(contents(disk / "c") == expected);
      if (calls == files.calls()) CHECK(fs::exists(disk / "c"));
    }
}

TEST_CASE("each sum of a corpus is compared with its shards, and documents of few sentences are doubted") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of_letters();
  write_text(directory / "t", some_text(30));
  write_corpus({.inputs = {directory / "t"}, .output = directory / "c"}, tokenizer);
  const fs::path file = directory / "c" / kCorpusManifest;
  const std::string good = read_text(file);
  const auto refusal = [&](const std::string& key, const nlohmann::ordered_json& value) {
    nlohmann::ordered_json json = nlohmann::ordered_json::parse(good);
    json[key] = value;
    write_text(file, json.dump());
    return support::refusal(Failure::input, [&] { MappedCorpus({directory / "c"}, tokenizer); });
  };
  CHECK(refusal("tokens", 360) == "");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, nlohmann::ordered_json>>{{"tokens", 361},
                                                                   {"sentences", 89},
                                                                   {"documents", 31},
                                                                   {"id_bytes", 4},
                                                                   {"format", "another corpus"},
                                                                   {"format_version", 1}})
    CHECK(refusal(key, value).starts_with(file.string() + ": " + key + ": "));
  CHECK(doubt_about_sentences(3, 5) != "");
  CHECK(doubt_about_sentences(3, 6) == "");
  CHECK(doubt_about_sentences(0, 0) == "");
}

TEST_CASE("a text of fewer bytes than shards has one for each document") {
  const TemporaryDirectory directory;
  write_text(directory / "t", "a\n\nb\n\n");
  const CorpusResult result =
      write_corpus({.inputs = {directory / "t"}, .output = directory / "c", .shards = 20}, tokenizer_of_letters());
  CHECK(result.manifest.shards.size() == 2);
  CHECK(contents(directory / "c").size() == 7);  // three files each, and the manifest
}

TEST_CASE("a text that grows while it is read makes no more shards than were asked for") {
  const TemporaryDirectory directory;
  write_text(directory / "t", some_text(100));
  bool has_grown = false;
  const auto grow = [&](std::uint64_t) {
    if (!std::exchange(has_grown, true)) std::ofstream(directory / "t", std::ios::app) << some_text(1000);
  };
  const CorpusJob job{
      .inputs = {directory / "t"}, .output = directory / "c", .shards = 2, .progress = grow, .block_bytes = 300};
  const CorpusResult result = write_corpus(job, tokenizer_of_letters());
  CHECK(result.manifest.shards.size() == 2);
  CHECK(result.manifest.total().documents.count == 1100);
}

TEST_CASE("blank lines after each other end a document once") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of_letters();
  write_text(directory / "t", "\na b\n\n \n\nc d\n\n");
  write_corpus({.inputs = {directory / "t"}, .output = directory / "c"}, tokenizer);
  const MappedCorpus corpus({directory / "c"}, tokenizer);
  CHECK(corpus.documents() == 2);
  CHECK(corpus.sentences(1).count() == 1);
}
