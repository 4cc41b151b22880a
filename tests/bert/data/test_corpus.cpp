#include <doctest/doctest.h>

#include <filesystem>
#include <functional>

#include "bert/data/corpus_writer.h"
#include "bert/data/mapped_corpus.h"
#include "bert/data/pretraining_text.h"
#include "bert/data/pretraining_text_corpus.h"
#include "io/error.h"
#include "support/faulty_files.h"
#include "support/gzip.h"
#include "support/program.h"

using namespace bertrand;
using namespace bertrand::data;
using support::read_text;
using support::TemporaryDirectory;
using support::write_text;
namespace fs = std::filesystem;

namespace {

/// `more` further words make the vocabulary larger.
text::Tokenizer tokenizer_of(int more = 0, bool lower_case = true) {
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) words += std::string(1, c) + "\n##" + c + "\n";
  for (int i = 0; i < more; ++i) words += "word" + std::to_string(i) + "\n";
  return text::Tokenizer(text::Vocabulary::parse(words, "vocab.txt"), {.lower_case = lower_case});
}

/// `documents` documents of different lengths and words.
std::string some_text(int documents, int first = 0) {
  std::string text;
  for (int d = first; d < first + documents; ++d) {
    for (int s = 0; s < 2 + d % 7; ++s) {
      for (int w = 0; w <= (d * 7 + s * 5) % 9; ++w)
        text += std::string(1, static_cast<char>('a' + (d + s + w) % 26)) + (w % 3 == 2 ? "" : " ");
      text += "\n";
    }
    text += "\n";
  }
  return text;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// A job that was begun and stopped: the same job again goes on with it.
CorpusJob begun_corpus(const TemporaryDirectory& directory, const text::Tokenizer& tokenizer) {
  write_text(directory / "t", some_text(30));
  CorpusJob job{.inputs = {directory / "t"},
                .output = directory / "c",
                .progress = [](std::uint64_t) { fail(Failure::interrupted, "stopped"); },
                .stop = [] { return true; }};
  CHECK(message_of([&] { write_corpus(job, tokenizer); }) == "stopped");
  job.progress = nullptr;
  return job;
}

/// All that is in a directory, by name.
std::map<std::string, std::string> contents(const fs::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(directory)) files[entry.path().filename()] = read_text(entry.path());
  return files;
}

using Examples = std::vector<PretrainingExample>;

Examples examples_of(std::shared_ptr<const CorpusView> corpus, const text::Tokenizer& tokenizer, int threads = 1) {
  PretrainingText text(std::move(corpus), tokenizer.vocabulary(),
                       {.pairs = {.max_seq_length = 24}, .seed = 3, .threads = threads});
  Examples examples;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch)
    for (std::int64_t i = 0; i < text.examples(epoch); ++i) examples.push_back(text.example(epoch, i));
  return examples;
}

bool equal(const Examples& a, const Examples& b) {
  return std::ranges::equal(a, b, [](const PretrainingExample& x, const PretrainingExample& y) {
    return x.token_ids == y.token_ids && x.token_types == y.token_types && x.masked_positions == y.masked_positions &&
           x.masked_ids == y.masked_ids && x.next_sentence_label == y.next_sentence_label;
  });
}

Examples of_text(const std::vector<fs::path>& files, const text::Tokenizer& tokenizer) {
  return examples_of(std::make_shared<HeldCorpus>(read_corpus(files, tokenizer, {}), tokenizer.vocabulary().size()),
                     tokenizer);
}

Examples of_corpora(const std::vector<fs::path>& directories, const text::Tokenizer& tokenizer, int threads = 1) {
  return examples_of(std::make_shared<MappedCorpus>(directories, tokenizer, CorpusCheck{.extent = InputCheck::none}),
                     tokenizer, threads);
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace

TEST_CASE("a corpus that is mapped gives the examples of its text, with ids of two bytes or four") {
  const TemporaryDirectory directory;
  write_text(directory / "a.txt", some_text(40));
  write_text(directory / "b.txt", some_text(30, 40));
  for (const int more : {0, 66000}) {
    const text::Tokenizer tokenizer = tokenizer_of(more);
    const fs::path corpus = directory / ("corpus" + std::to_string(more));
    const std::vector<fs::path> files = {directory / "a.txt", directory / "b.txt"};
    const CorpusResult result = write_corpus({.inputs = files, .output = corpus, .threads = 2, .shards = 5}, tokenizer);
    CHECK(result.manifest.shards.size() == 5);
    CHECK(result.manifest.total().documents.count == 70);
    CHECK(result.manifest.id_bytes() == (more == 0 ? 2 : 4));
    const Examples expected = of_text(files, tokenizer);
    CHECK(expected.size() > 300);
    CHECK(equal(of_corpora({corpus}, tokenizer), expected));
    CHECK(equal(of_corpora({corpus}, tokenizer, 3), expected));
  }
}

TEST_CASE("corpora made apart and listed together are one") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of();
  for (const std::string name : {"a", "b"}) {
    write_text(directory / (name + ".txt"), some_text(20, name == "a" ? 0 : 20));
    write_corpus({.inputs = {directory / (name + ".txt")}, .output = directory / name}, tokenizer);
  }
  CHECK(equal(of_corpora({directory / "a", directory / "b"}, tokenizer),
              of_text({directory / "a.txt", directory / "b.txt"}, tokenizer)));
}

TEST_CASE("corpora of one document each are as many documents as corpora") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of();
  write_text(directory / "one.txt", "a b c\n");
  write_text(directory / "two.txt", "d e\nf\n");
  for (const std::string name : {"one", "two"})
    write_corpus({.inputs = {directory / (name + ".txt")}, .output = directory / name}, tokenizer);
  const MappedCorpus corpus({directory / "one", directory / "two"}, tokenizer);
  CHECK(corpus.documents() == 2);
  CHECK(corpus.sentences() == 3);
  CHECK(corpus.tokens() == 6);
  CHECK(corpus.sentences(1).count() == 2);
  CHECK(corpus.sentences(1).tokens(0) == 2);
}

TEST_CASE("what was begun of a corpus is not gone on with if a part of it is gone") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of();
  const CorpusJob job = begun_corpus(directory, tokenizer);
  for (const char* name : {"shard-00000.documents", "shard-00000.sentences", "shard-00000.ids"}) {
    CAPTURE(name);
    const fs::path file = fs::path(directory / "c.partial") / name;
    const std::string least = fmt::format("{}: expected at least {} bytes, ", file.string(), fs::file_size(file));
    fs::resize_file(file, fs::file_size(file) - 1);
    CHECK(message_of([&] { write_corpus(job, tokenizer); }).starts_with(least));
  }
  CHECK(!fs::exists(directory / "c"));
}

TEST_CASE("lines of JSON and compressed files hold the documents that plain text would") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of();
  write_text(directory / "plain.txt", "a b\nc d\n\ne f g\n\nh\n");
  write_text(directory / "lines.jsonl",
             "{\"text\": \"a b\\n\\nc d\"}\n\n{\"id\": 7, \"text\": \"e f g\"}\n{\"text\": \"h\"}");
  write_text(directory / "text.gz", support::gzipped(read_text(directory / "plain.txt")));
  write_text(directory / "lines.jsonl.gz", support::gzipped(read_text(directory / "lines.jsonl")));
  // What zstd 1.5 makes of "a b\nc d\n\n" and "e f g\n\nh\n", a frame each.
  const std::string first = "28b52ffd04584900006120620a6320640a0aec9e2af3",
                    second = "28b52ffd045849000065206620670a0a680a21bf5076";
  write_text(directory / "text.zst", from_hex(first + second));
  write_text(directory / "pzstd.zst",
             from_hex("502a4d18020000001234" + first + second));  // after a frame to be passed over
  write_corpus({.inputs = {directory / "plain.txt"}, .output = directory / "plain"}, tokenizer);
  const auto expected = contents(directory / "plain");
  for (const std::string name : {"lines.jsonl", "text.gz", "lines.jsonl.gz", "text.zst", "pzstd.zst"}) {
    CAPTURE(name);
    write_corpus({.inputs = {directory / name}, .output = directory / "other"}, tokenizer);
    CHECK(contents(directory / "other") == expected);
    fs::remove_all(directory / "other");
  }
  write_text(directory / "bad.jsonl", "{\"text\": \"a\"}\n{\"txt\": \"a\"}\n");
  CHECK(message_of([&] {
          write_corpus({.inputs = {directory / "bad.jsonl"}, .output = directory / "other"}, tokenizer);
        }).starts_with(std::string(directory / "bad.jsonl") + ":2: text: expected "));
  fs::remove_all(directory / "other.partial");
  write_text(directory / "bad.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n\n{\"text\": \"c\"}\n{\"txt\": \"a\"}\n");
  for (const std::size_t bytes : {1, 40, 1000})  // in a later block, or a later part of it
    CHECK(
        message_of([&] {
          write_corpus(
              {.inputs = {directory / "bad.jsonl"}, .output = directory / "other", .threads = 3, .block_bytes = bytes},
              tokenizer);
        }).starts_with(std::string(directory / "bad.jsonl") + ":5: text: expected "));
  const std::string whole = read_text(directory / "text.gz");
  write_text(directory / "cut.gz", whole.substr(0, whole.size() - 9));
  CHECK(message_of([&] {
          write_corpus({.inputs = {directory / "cut.gz"}, .output = directory / "other"}, tokenizer);
        }).find("cut.gz: expected whole compressed data, got ") != std::string::npos);
  std::string damaged = from_hex(first + second);
  damaged[first.size() / 2 + 12] ^= 4;
  write_text(directory / "damaged.zst", damaged);
  write_text(directory / "cut.zst", from_hex(first + second.substr(0, second.size() - 6)));
  for (const std::string name : {"damaged.zst", "cut.zst"})
    CHECK(message_of([&] {
            write_corpus({.inputs = {directory / name}, .output = directory / "other"}, tokenizer);
          }).find(name + ": expected whole compressed data, got ") != std::string::npos);
  CHECK(!fs::exists(directory / "other"));
  CHECK(!fs::exists(directory / "other.partial"));
}

TEST_CASE("a corpus that is interrupted anywhere goes on to the same bytes and warnings, whatever threads and blocks") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of();
  write_text(directory / "a.txt", "x\xFF y\n" + std::string(300, '?') + "\n" + some_text(60));
  write_text(directory / "b.gz", support::gzipped(some_text(30, 60)));
  CorpusJob job{.inputs = {directory / "a.txt", directory / "b.gz"}, .output = directory / "whole", .shards = 3};
  const CorpusResult whole = write_corpus(job, tokenizer);
  const auto expected = contents(directory / "whole");
  CHECK(whole.manifest.shards.size() == 3);
  REQUIRE(whole.warnings.size() == 2);

  job.save_bytes = 1000;
  job.block_bytes = 300;
  int interruptions = 0;
  for (int blocks = 1; blocks < 40; blocks += 4) {
    job.output = directory / ("again" + std::to_string(blocks));
    CAPTURE(blocks);
    bool first = true;
    for (bool done = false; !done; first = false) {
      int left = blocks;
      job.threads = 1 + interruptions % 3;
      job.block_bytes = 300 + 7 * static_cast<std::size_t>(interruptions);
      job.stop = [&] { return left == 1; };
      job.progress = [&](std::uint64_t) {
        if (--left == 0) fail(Failure::interrupted, "stopped");
      };
      try {
        const CorpusResult result = write_corpus(job, tokenizer);
        CHECK((result.begun_bytes > 0) == !first);
        CHECK(result.warnings == whole.warnings);
        done = true;
      } catch (const Error& error) {
        REQUIRE(std::string(error.what()) == "stopped");
        CHECK(!fs::exists(job.output));
        ++interruptions;
      }
    }
    CHECK(contents(job.output) == expected);
  }
  CHECK(interruptions > 10);
}

TEST_CASE("a call to the disk that fails leaves no corpus, and what is left goes on to the same bytes") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of();
  write_text(directory / "t", some_text(30));
  CorpusJob job{
      .inputs = {directory / "t"}, .output = directory / "whole", .shards = 2, .save_bytes = 1, .block_bytes = 900};
  support::FailingFiles counting(-1, "");
  write_corpus(job, tokenizer, counting);
  const auto expected = contents(directory / "whole");
  job.output = directory / "other";
  REQUIRE(counting.calls() > 60);
  for (int failing = 1; failing <= counting.calls(); ++failing) {
    CAPTURE(failing);
    support::FailingFiles files(failing, "No space left on device");
    CHECK(message_of([&] { write_corpus(job, tokenizer, files); }).find("No space left") != std::string::npos);
    if (!fs::exists(job.output)) write_corpus(job, tokenizer);
    auto found = contents(job.output);
    found.erase("progress.json");  // the last call removes it
    CHECK(found == expected);
    fs::remove_all(job.output);
  }
}

TEST_CASE("what was begun of other inputs or flags is not gone on with, and a name that is taken is refused") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of();
  const CorpusJob job = begun_corpus(directory, tokenizer);
  CorpusJob other = job;
  other.shards = 2;
  CHECK(message_of([&] { write_corpus(other, tokenizer); }).find("expected the beginning of this job, got") !=
        std::string::npos);
  CHECK(message_of([&] { write_corpus(job, tokenizer_of(1)); }).find("expected the beginning of this job") !=
        std::string::npos);
  write_corpus(job, tokenizer);
  CHECK(message_of([&] { write_corpus(job, tokenizer); }) ==
        "--output: " + job.output.string() +
            ": expected a name that is free, got a directory; hint: remove it or name another");
}

TEST_CASE("a corpus whose files are not as they must be is refused in one line that names the file") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of();
  write_text(directory / "t", some_text(30));
  const fs::path corpus = directory / "c";
  write_corpus({.inputs = {directory / "t"}, .output = corpus}, tokenizer);
  const auto whole = contents(corpus);
  const auto refusal = [&] { return message_of([&] { of_corpora({corpus}, tokenizer); }); };
  const auto with = [&](const std::string& name, const std::function<void(std::string&)>& change) {
    std::string bytes = whole.at(name);
    change(bytes);
    write_text(corpus / name, bytes);
    const std::string message = refusal();
    write_text(corpus / name, whole.at(name));
    CHECK(message.find('\n') == std::string::npos);
    return message;
  };
  CHECK(refusal() == "");
  const std::string ids = "shard-00000.ids", sentences = "shard-00000.sentences", documents = "shard-00000.documents";
  for (const std::string& name : {ids, sentences, documents}) {
    CHECK(with(name, [](std::string& b) { b.pop_back(); }).find(name + ": expected ") != std::string::npos);
    CHECK(with(name, [](std::string& b) { b += "12345678"; }).find("; hint: is it cut short?") != std::string::npos);
  }
  CHECK(with(ids, [](std::string& b) { b[21] = '\x7F'; }).find("token 10: expected an id below 57, ") !=
        std::string::npos);
  CHECK(with(ids, [](std::string& b) { b[20] = 57, b[21] = 0; }).find("token 10: expected an id below 57, ") !=
        std::string::npos);
  CHECK(with(sentences, [](std::string& b) { b[8 * 5 + 3] = '\x7F'; }).find(", sentence ") != std::string::npos);
  CHECK(with(sentences, [](std::string& b) { b.replace(8 * 4, 8, b.substr(8 * 3, 8)); }).find("tokens in order") !=
        std::string::npos);
  CHECK(with(sentences, [](std::string& b) { ++b[b.size() - 8]; }).find("document 29, sentence ") != std::string::npos);
  CHECK(with(documents, [](std::string& b) { b[8 * 5 + 7] = '\x7F'; }).find("expected sentences in order") !=
        std::string::npos);
  CHECK(with(documents, [](std::string& b) { b.replace(8 * 4, 8, b.substr(8 * 6, 8)); }).find("document ") !=
        std::string::npos);
  CHECK(with(documents, [](std::string& b) {
          b.replace(8 * 4, 8, b.substr(8 * 5, 8));
        }).find("document 4: expected sentences in order among 145, got 20 to 20") != std::string::npos);
  const std::string manifest = kCorpusManifest;
  CHECK(with(manifest, [](std::string& b) { b.resize(b.size() / 2); }).find("manifest.json:") != std::string::npos);
  CHECK(with(manifest, [](std::string& b) { b.replace(b.find("\"documents\": 30"), 15, "\"documents\": 31"); }) ==
        (corpus / manifest).string() + ": documents: expected 30, the sum of the shards, got 31");
  CHECK(message_of([&] { of_corpora({corpus}, tokenizer_of(1)); }).find("; hint: make the corpus with the same") !=
        std::string::npos);
  std::string others = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";  // as many
  for (char c = 'z'; c >= 'a'; --c) others += std::string(1, c) + "\n##" + c + "\n";
  const text::Tokenizer of_others(text::Vocabulary::parse(others, "vocab.txt"));
  REQUIRE(of_others.vocabulary().size() == tokenizer.vocabulary().size());
  CHECK(message_of([&] { of_corpora({corpus}, of_others); }).find("; hint: make the corpus with the same") !=
        std::string::npos);
  CHECK(message_of([&] { of_corpora({corpus}, tokenizer_of(0, false)); }).find("lower_case: expected false") !=
        std::string::npos);
  CHECK(message_of([&] { of_corpora({directory / "."}, tokenizer); }).find("prepare corpus makes it of text; DIR/* ") !=
        std::string::npos);
}

TEST_CASE("damage is found where it is looked for: anywhere, in the sample of each file, or nowhere") {
  const TemporaryDirectory directory;
  const text::Tokenizer tokenizer = tokenizer_of();
  write_text(directory / "t", some_text(12000));
  const fs::path corpus = directory / "c";
  write_corpus({.inputs = {directory / "t"}, .output = corpus, .shards = 2}, tokenizer);
  const auto refusal = [&](const CorpusCheck& check) {
    return message_of([&] { MappedCorpus({corpus}, tokenizer, check); });
  };
  using enum InputCheck;
  for (const InputCheck extent : {all, index, none}) CHECK(refusal({.extent = extent}) == "");
  const fs::path file = corpus / "shard-00001.ids";
  const std::string whole = read_text(file);
  const auto flip = [&](std::size_t byte) {
    std::string bytes = whole;
    bytes[byte] = static_cast<char>(bytes[byte] ^ 1);
    write_text(file, bytes);
  };
  REQUIRE(whole.size() > 80000);
  for (const std::size_t sampled : {std::size_t{0}, std::size_t{4095}, whole.size() - 1}) {
    flip(sampled);
    CHECK(refusal({.extent = all}).starts_with(file.string() + ": expected CRC-32C 0x"));
    CHECK(refusal({.extent = index}).starts_with(file.string() + ": expected a sample with CRC-32C 0x"));
    CHECK(refusal({.extent = none}) == "");
  }
  flip(4097);
  CHECK(refusal({.extent = index}) == "");
  const std::string message = refusal({.extent = all, .threads = 3});
  CHECK(message.find(", as manifest.json says, got 0x") != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
  // One of two processes finds it, the one whose share has the file: 0 to 2 are those of the first shard.
  CHECK(refusal({.extent = all, .process = 0, .processes = 2}) == "");
  CHECK(refusal({.extent = all, .process = 1, .processes = 2}) == message);
  write_text(file, whole);
  for (const auto& entry : fs::directory_iterator(corpus)) {
    const std::string bytes = read_text(entry.path());
    if (entry.path().extension() == ".json") continue;
    write_text(entry.path(), bytes.substr(0, bytes.size() - 1) + static_cast<char>(bytes.back() ^ 1));
    CHECK(refusal({.extent = all}).starts_with(entry.path().string() + ": expected CRC-32C 0x"));
    write_text(entry.path(), bytes);
  }
}
