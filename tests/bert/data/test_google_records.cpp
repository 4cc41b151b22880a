#include "bert/data/google_records.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "bert/data/instance_spill.h"
#include "bert/data/tf_example.h"
#include "io/error.h"
#include "io/sha256.h"
#include "io/tfrecord.h"
#include "support/faulty_files.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand::data;
using bertrand::Error;
using bertrand::text::Tokenizer;
using bertrand::text::Vocabulary;
namespace fs = std::filesystem;

namespace {

const std::string kData = bertrand::paths::shared + "/data/";
const std::string kVocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n##a\n##b\n##c\n";
const std::string kText = "a b c\nab bc\nd d d d\n\nc\n\na a a\nb cab\nabc d\n c c\n\n d a\n";

bool have_data() {
  if (fs::exists(kData + "vocab")) return true;
  MESSAGE("SKIPPED: no data in " << kData);
  return false;
}

Corpus corpus_of(const std::vector<fs::path>& files, const Vocabulary& vocabulary) {
  return read_corpus(files, Tokenizer(vocabulary), {.as_google = true});
}

std::vector<Features> records_of(const fs::path& file) {
  bertrand::io::RecordReader reader(file);
  std::vector<Features> records;
  for (std::string record; reader.next(record);) records.push_back(parse_example(record, reader.place()));
  return records;
}

/// Per record and feature, sorted, a line "name:v v v" with every value as an integer.
std::string canonical_dump(const std::vector<Features>& records) {
  std::string dump;
  for (const Features& features : records) {
    for (const auto& [name, feature] : features) {
      dump += name + ":";
      std::string separator;
      const auto put = [&](const auto& values) {
        for (const auto value : values) {
          dump += separator + std::to_string(static_cast<long long>(value));
          separator = " ";
        }
      };
      if (const auto* floats = std::get_if<std::vector<float>>(&feature)) put(*floats);
      if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&feature)) put(*ints);
      dump += "\n";
    }
  }
  return dump;
}

}  // namespace

TEST_CASE("the records of Google's script on its sample text, by published hashes") {
  if (!have_data()) return;
  struct Row {
    GoogleOptions options;
    std::uint64_t records, tokens, masked, random_next;
    std::string hash;
  };
  const std::vector<Row> rows = {
      {{.dupe_factor = 5}, 60, 6207, 922, 32, "f686bf8d4c24f45562d82610963204a5d854a267d004f53679eda5bd7658b67d"},
      {{.dupe_factor = 10}, 118, 12371, 1839, 64, "b5aefaba36b12921357a51f448a7a33a7913805764cca485ca9428568af9b050"},
      {{.dupe_factor = 5, .whole_words = true},
       64,
       6567,
       978,
       37,
       "7873af5bd1c6ad992453db2d371485bd0ad90a068ab70f202752fab0ebd20400"},
      {{.max_seq_length = 512, .max_predictions = 80, .dupe_factor = 5},
       38,
       8520,
       1277,
       29,
       "05826c91091f2ce77442866b3ad7ef8b06cdfd6e96eb7d670c3e1a83cd699523"},
      {{.max_seq_length = 512, .max_predictions = 76, .dupe_factor = 10},
       70,
       17074,
       2552,
       47,
       "05875f478969cca0b6e55116539e851d7d9049fe672c65ced3045264f9eb6eb8"},
      {{.dupe_factor = 5, .seed = 42},
       58,
       6206,
       924,
       30,
       "8ad53539e0731f5033a32bc76d3871c80d0c9975fba083c8fcb10a3f9f3f1570"},
  };
  const auto vocabulary = Vocabulary::load(kData + "vocab/bert-base-uncased/vocab.txt");
  const Corpus corpus = corpus_of({kData + "bert_official/sample_text.txt"}, vocabulary);
  const support::TemporaryDirectory directory;
  for (const Row& row : rows) {
    const fs::path file = directory / "r.tfrecord";
    const RecordCounts counts = write_google_records(corpus, vocabulary, row.options, {.files = {file}, .threads = 2});
    CHECK(counts.records == row.records);
    CHECK(counts.tokens == row.tokens);
    CHECK(counts.masked == row.masked);
    CHECK(counts.random_next == row.random_next);
    CHECK(bertrand::io::sha256(canonical_dump(records_of(file))) == row.hash);
  }
}

TEST_CASE("the published TFRecord file is read: values as in its JSON lines, hash as published") {
  if (!have_data()) return;
  const auto records = records_of(kData + "golden_pretraining/tf_examples.tfrecord");
  CHECK(bertrand::io::sha256(canonical_dump(records)) ==
        "f686bf8d4c24f45562d82610963204a5d854a267d004f53679eda5bd7658b67d");
  std::ifstream lines(kData + "golden_pretraining/tf_examples.jsonl");
  std::size_t i = 0;
  for (std::string line; std::getline(lines, line); ++i) {
    REQUIRE(i < records.size());
    const auto golden = nlohmann::json::parse(line);
    for (const char* name : {"input_ids", "masked_lm_positions", "masked_lm_ids", "next_sentence_labels"}) {
      if (!golden.contains(name)) continue;
      auto expected = golden.at(name);
      if (!expected.is_array()) expected = nlohmann::json::array({expected});
      CHECK(std::get<std::vector<std::int64_t>>(records[i].at(name)) == expected.get<std::vector<std::int64_t>>());
    }
  }
  CHECK(i == records.size());
}

TEST_CASE("several files hold the records round robin, whatever the number of threads") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "t", kText);
  const auto vocabulary = Vocabulary::parse(kVocabulary, "v");
  const Corpus corpus = corpus_of({directory / "t"}, vocabulary);
  const GoogleOptions options{.max_seq_length = 8, .max_predictions = 3, .dupe_factor = 800};
  write_google_records(corpus, vocabulary, options, {.files = {directory / "all"}, .threads = 1});
  const RecordCounts counts = write_google_records(
      corpus, vocabulary, options, {.files = {directory / "x", directory / "y", directory / "z"}, .threads = 3});
  CHECK(counts.bytes ==
        fs::file_size(directory / "x") + fs::file_size(directory / "y") + fs::file_size(directory / "z"));
  const auto all = records_of(directory / "all");
  CHECK(all.size() > 4096);
  const std::vector<std::vector<Features>> parts = {records_of(directory / "x"), records_of(directory / "y"),
                                                    records_of(directory / "z")};
  REQUIRE(parts[0].size() + parts[1].size() + parts[2].size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) REQUIRE(parts[i % 3][i / 3] == all[i]);
}

TEST_CASE("instances of more than a megabyte come back from the disk in any order") {
  const support::TemporaryDirectory directory;
  InstanceSpill spill(bertrand::io::Files::system(), directory / "spill", 2);
  const auto instance_of = [](std::uint32_t i) {
    Instance instance{.a_begin = i, .b_begin = 2 * i, .a_count = i % 7, .b_count = i % 5, .is_random_next = i % 2 == 0};
    for (std::uint32_t m = 0; m < i % 3; ++m) instance.masked.push_back({m, static_cast<std::int32_t>(i)});
    return instance;
  };
  constexpr std::uint32_t kInstances = 25'000;  // of 48 bytes
  for (std::uint32_t i = 0; i < kInstances; ++i) spill.append(instance_of(i));
  spill.finish();
  CHECK(fs::is_empty(directory / ""));
  Instance got;
  for (std::uint32_t i = kInstances; i-- > 0;) {
    const Instance expected = instance_of(i);
    spill.read(i, got);
    REQUIRE(got.a_begin == expected.a_begin);
    REQUIRE(got.b_begin == expected.b_begin);
    REQUIRE(got.a_count == expected.a_count);
    REQUIRE(got.b_count == expected.b_count);
    REQUIRE(got.is_random_next == expected.is_random_next);
    REQUIRE(got.masked.size() == expected.masked.size());
    for (std::size_t m = 0; m < got.masked.size(); ++m) {
      REQUIRE(got.masked[m].position == expected.masked[m].position);
      REQUIRE(got.masked[m].replacement == expected.masked[m].replacement);
    }
  }
  CHECK(support::refusal(bertrand::Failure::io, [&] { spill.read(kInstances, got); }) != "");
}

TEST_CASE("a document goes on over the end of a file unless a blank line ends it") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "one", "a\nb");
  support::write_text(directory / "two", "c\n\u2028 \x1F\nd\n\xC2\xAD\nd\n");
  const Corpus corpus = corpus_of({directory / "one", directory / "two"}, Vocabulary::parse(kVocabulary, "v"));
  CHECK(corpus.documents.sentences == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5});
  CHECK(corpus.documents.documents == std::vector<std::uint64_t>{0, 3, 5});  // the line of white space ended one
}

TEST_CASE("carriage returns vanish as in TensorFlow's readline, which Google's script reads with") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "t", "a\rb\r\n\r\nc \rc\n");
  const auto vocabulary = Vocabulary::parse(kVocabulary, "v");
  const auto ids = [](const Corpus& corpus) {
    std::vector<std::int32_t> list;
    for (std::size_t i = 0; i < corpus.ids.size(); ++i) list.push_back(corpus.ids[i]);
    return list;
  };
  const Corpus google = corpus_of({directory / "t"}, vocabulary);
  CHECK(ids(google) == std::vector<std::int32_t>{5, 10, 7, 7});  // ab, c c
  CHECK(google.documents.count() == 2);
  CHECK(ids(read_corpus({directory / "t"}, Tokenizer(vocabulary), {})) == std::vector<std::int32_t>{5, 6, 7, 7});
}

TEST_CASE("one document, of one token even, gives records whose random next sentence is its own") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "t", "a\n");
  const auto vocabulary = Vocabulary::parse(kVocabulary, "v");
  const RecordCounts counts =
      write_google_records(corpus_of({directory / "t"}, vocabulary), vocabulary,
                           {.max_seq_length = 5, .dupe_factor = 3}, {.files = {directory / "r"}});
  CHECK(counts.records == 3);
  CHECK(counts.random_next == 3);
  CHECK(counts.tokens == 15);
}

TEST_CASE("the records of Google's script for one document, which looks ten times for another one") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "t", "a b c\nd c\na a b d\nb\n");
  const auto vocabulary = Vocabulary::parse(kVocabulary, "v");
  write_google_records(corpus_of({directory / "t"}, vocabulary), vocabulary, {.max_seq_length = 12, .dupe_factor = 3},
                       {.files = {directory / "r"}});
  using Ints = std::vector<std::int64_t>;
  const Ints expected[] = {{2, 4, 3, 5, 5, 6, 8, 6, 3, 0, 0, 0},  {2, 4, 5, 6, 8, 3, 8, 7, 5, 4, 6, 3},
                           {2, 8, 7, 3, 4, 6, 7, 8, 7, 5, 5, 3},  {2, 5, 4, 7, 3, 8, 4, 5, 5, 6, 8, 3},
                           {2, 6, 3, 5, 5, 6, 8, 11, 3, 0, 0, 0}, {2, 5, 6, 7, 3, 8, 7, 5, 4, 4, 8, 3},
                           {2, 6, 3, 5, 6, 4, 8, 4, 5, 5, 6, 3},  {2, 5, 6, 4, 3, 6, 3, 0, 0, 0, 0, 0}};
  const auto records = records_of(directory / "r");
  REQUIRE(records.size() == std::size(expected));
  for (std::size_t i = 0; i < records.size(); ++i) CHECK(std::get<Ints>(records[i].at("input_ids")) == expected[i]);
}

TEST_CASE("options outside their range are refused, those at its ends are not, and special tokens must be there") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "t", kText);
  const auto vocabulary = Vocabulary::parse(kVocabulary, "v");
  const Corpus corpus = corpus_of({directory / "t"}, vocabulary);
  for (const GoogleOptions& options : {GoogleOptions{.max_seq_length = 4}, GoogleOptions{.max_seq_length = 65537},
                                       GoogleOptions{.max_predictions = -1}, GoogleOptions{.masked_lm_prob = 1.5},
                                       GoogleOptions{.masked_lm_prob = -0.5}, GoogleOptions{.short_seq_prob = 1.5},
                                       GoogleOptions{.short_seq_prob = -0.5},
                                       GoogleOptions{.short_seq_prob = std::nan("")}, GoogleOptions{.dupe_factor = 0}})
    CHECK(support::refusal(bertrand::Failure::usage, [&] {
            write_google_records(corpus, vocabulary, options, {.files = {directory / "r"}});
          }) != "");
  for (const GoogleOptions& options :
       {GoogleOptions{.max_seq_length = 5}, GoogleOptions{.max_seq_length = 65536}, GoogleOptions{.max_predictions = 0},
        GoogleOptions{.masked_lm_prob = 0}, GoogleOptions{.masked_lm_prob = 1}, GoogleOptions{.short_seq_prob = 0},
        GoogleOptions{.short_seq_prob = 1}, GoogleOptions{.dupe_factor = 1}})
    CHECK_NOTHROW(GoogleInstances(corpus, vocabulary, options));
  const auto no_mask = Vocabulary::parse("[UNK]\n[CLS]\n[SEP]\na\n", "v", {.require_specials = false});
  CHECK_THROWS_AS(GoogleInstances(corpus, no_mask, {}), Error);
  CHECK_NOTHROW(GoogleInstances(corpus, Vocabulary::parse("[CLS]\n[SEP]\n[MASK]\n[UNK]\na\n", "v"), {}));
}

TEST_CASE("progress grows from the first instances drawn to the last ones written") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "t", "a\n\nb\n");
  const auto vocabulary = Vocabulary::parse(kVocabulary, "v");
  std::vector<double> shares;
  const RecordCounts counts = write_google_records(
      corpus_of({directory / "t"}, vocabulary), vocabulary, {.max_seq_length = 8, .dupe_factor = 4100},
      {.files = {directory / "r"}, .progress = [&](double share) { shares.push_back(share); }});
  CHECK(counts.records == 8200);  // one of each document each time
  REQUIRE(shares.size() > 3);
  CHECK(shares.front() > 0);
  CHECK(shares.front() < 0.2);
  CHECK(std::ranges::adjacent_find(shares, std::greater_equal()) == shares.end());
  CHECK(shares.back() == doctest::Approx(1));
}

TEST_CASE("whatever call fails and wherever it is stopped, nothing half-written is left") {
  const auto vocabulary = Vocabulary::parse(kVocabulary, "v");
  const support::TemporaryDirectory input;
  support::write_text(input / "t", kText);
  const Corpus corpus = corpus_of({input / "t"}, vocabulary);
  const GoogleOptions options{.max_seq_length = 8, .max_predictions = 3, .dupe_factor = 2};
  bool has_succeeded = false;
  for (int failing = 1; !has_succeeded; ++failing) {
    const support::TemporaryDirectory directory;
    support::FailingFiles files(failing, "No space left on device");
    try {
      write_google_records(corpus, vocabulary, options, {.files = {directory / "x", directory / "y"}, .threads = 2},
                           files);
      has_succeeded = true;
    } catch (const Error& error) {
      CHECK(error.failure() == bertrand::Failure::io);
    }
    for (const auto& entry : fs::directory_iterator((directory / "x").parent_path())) {
      CHECK((entry.path().filename() == "x" || entry.path().filename() == "y"));
      CHECK_FALSE(records_of(entry.path()).empty());
    }
  }
  const support::TemporaryDirectory directory;
  const RecordFiles stopped{.files = {directory / "x"},
                            .progress = [](double) { bertrand::fail(bertrand::Failure::interrupted, "stop"); }};
  CHECK_THROWS_AS(write_google_records(corpus, vocabulary, options, stopped), Error);
  CHECK(fs::is_empty((directory / "x").parent_path()));
}
