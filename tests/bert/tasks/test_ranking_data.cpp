// The files of passage ranking and how a query and a passage are encoded.
#include <doctest/doctest.h>

#include "bert/tasks/ranking_data.h"
#include "io/signals.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;
using Ids = std::vector<std::int32_t>;

namespace {

text::Tokenizer small_tokenizer() {
  return text::Tokenizer(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n", "vocab"));
}

struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer = small_tokenizer();
  std::filesystem::path file(const std::string& text) const {
    support::write_text(directory / "file.tsv", text);
    return directory / "file.tsv";
  }
  std::string refusal(const std::string& text) const {
    return support::refusal(Failure::input, [&] { CandidateList list(file(text)); });
  }
  std::string triples_refusal(const std::string& text) const {
    RankingEncoder encoder(tokenizer, {});
    return support::refusal(Failure::input, [&] { read_triples(file(text), encoder); });
  }
};

Ids ids_of(const EncodedDataset& examples, std::int64_t i) { return {examples.ids(i).begin(), examples.ids(i).end()}; }

}  // namespace

TEST_CASE("a query keeps its first pieces and the passage what is left of the length") {
  const Setting setting;
  RankingEncoder encoder(setting.tokenizer, {.sequence = 8, .query = 4});
  EncodedDataset examples;
  encoder.append("a b c", "d c b a d", examples);
  encoder.append("a b c", "d", examples);
  encoder.append("a", "d c b a d", examples);
  CHECK(ids_of(examples, 0) == Ids{2, 5, 6, 3, 8, 7, 6, 3});
  CHECK(ids_of(examples, 1) == Ids{2, 5, 6, 3, 8, 3});
  CHECK(ids_of(examples, 2) == Ids{2, 5, 3, 8, 7, 6, 5, 3});
  CHECK(examples.first_length(0) == 4);
  CHECK(examples.first_length(1) == 4);
  CHECK(examples.first_length(2) == 3);
  RankingEncoder least(setting.tokenizer, {.sequence = 5, .query = 3});
  least.append("a b", "c d", examples);
  CHECK(ids_of(examples, 3) == Ids{2, 5, 3, 7, 3});
  CHECK(support::refusal(Failure::usage, [&] { RankingEncoder(setting.tokenizer, {.sequence = 65, .query = 64}); }) ==
        "--max-seq-length: expected at least --max-query-length + 2 = 66, got 65");
  CHECK(support::refusal(Failure::usage, [&] { RankingEncoder(setting.tokenizer, {.sequence = 8, .query = 2}); }) ==
        "--max-query-length: expected at least 3, got 2");
}

TEST_CASE("a triple becomes the relevant example and the other one") {
  const Setting setting;
  RankingEncoder encoder(setting.tokenizer, {});
  const Triples triples = read_triples(setting.file("a\tb\tc\r\nd\ta\xFF\tb\n"), encoder);
  REQUIRE(triples.encoded.size() == 4);
  CHECK(ids_of(triples.encoded, 0) == Ids{2, 5, 3, 6, 3});
  CHECK(ids_of(triples.encoded, 1) == Ids{2, 5, 3, 7, 3});
  CHECK(ids_of(triples.encoded, 2) == Ids{2, 8, 3, 5, 3});
  CHECK(triples.invalid.count == 1);
  CHECK(triples.invalid.first_line == 2);

  CHECK(setting.triples_refusal("a\tb\tc\na\tb\n")
            .ends_with(
                "file.tsv:2: columns: expected query, relevant passage and other passage between tabs, got 2 of them"));
  CHECK(setting.triples_refusal("a\tb\t \n")
            .ends_with("file.tsv:1: column 3: expected query, relevant passage and other passage with a text each, got "
                       "an empty one"));
  CHECK(setting.triples_refusal("").ends_with("file.tsv: expected at least one triple, got none"));
}

TEST_CASE("candidates keep their queries in order and are ranked by score and then by their order") {
  const Setting setting;
  const CandidateList list(setting.file("7\tp1\ta\tb\n9\tp2\tc\td\n7\tp3\ta\tc\n7\tp4\ta\td\n"));
  CHECK(list.queries() == std::vector<std::string>{"7", "9"});
  REQUIRE(list.size() == 4);
  CHECK(list.passage(0) == "p1");
  CHECK(list.passage(3) == "p4");
  CHECK(list.query_of(1) == 1);
  using Ranked = std::vector<std::vector<std::int64_t>>;
  CHECK(list.ranked({-2, -1, -1, -2}) == Ranked{{2, 0, 3}, {1}});
  CHECK(setting.refusal("7\tp1\ta\n")
            .ends_with(
                "file.tsv:1: columns: expected query id, passage id, query and passage between tabs, got 3 of them"));
  CHECK(setting.refusal("7\tp1\ta\tb\n7\t\ta\tb\n").find("file.tsv:2: column 2: expected") != std::string::npos);
  CHECK(setting.refusal("").ends_with("file.tsv: expected at least one candidate, got none"));
}

TEST_CASE("blank lines at the end of triples and candidates do not count and those between others are refused") {
  const Setting setting;
  RankingEncoder encoder(setting.tokenizer, {});
  CHECK(read_triples(setting.file("a\tb\tc\n\n \t\r\n\n"), encoder).encoded.size() == 2);
  CHECK(CandidateList(setting.file("7\tp1\ta\tb\n\n\n")).size() == 1);
  CHECK(setting.triples_refusal("a\tb\tc\n\n\na\tb\tc\n")
            .ends_with("file.tsv:2: columns: expected query, relevant passage and other passage, got an empty line"));
  CHECK(setting.refusal("\n7\tp1\ta\tb\n")
            .ends_with("file.tsv:1: columns: expected query id, passage id, query and passage, got an empty line"));
  CHECK(setting.refusal("\n\n").ends_with("file.tsv: expected at least one candidate, got none"));
  std::vector<std::string> bad;  // the lines around an empty one are read
  CHECK(CandidateList(setting.file("7\tp1\ta\tb\n\n7\tp2\ta\n\n7\tp3\ta\tb\n\n"), &bad).size() == 2);
  REQUIRE(bad.size() == 3);
  CHECK(bad[0].find("file.tsv:2: columns: ") != std::string::npos);
  CHECK(bad[1].find("file.tsv:3: columns: ") != std::string::npos);
  CHECK(bad[2].find("file.tsv:4: columns: ") != std::string::npos);
  bad.clear();
  CHECK(support::refusal(Failure::input, [&] {
          CandidateList list(setting.file("7\tp1\ta\n7\tp2\n"), &bad);
        }).find("file.tsv:1: columns: ") != std::string::npos);
}

TEST_CASE("triples that are more than memory may hold lie on the disk, the same, and leave no name there") {
  const Setting setting;
  std::string lines;
  for (int i = 0; i < 50; ++i)
    lines += std::string(1, static_cast<char>('a' + i % 4)) + "\ta b c d\t" + (i % 3 == 0 ? "d d" : "c") + "\n";
  const std::filesystem::path file = setting.file(lines), directory = setting.directory / "run";
  std::filesystem::create_directory(directory);
  RankingEncoder encoder(setting.tokenizer, {});
  const EncodedDataset held = read_triples(file, encoder).encoded;
  const std::size_t bytes = static_cast<std::size_t>(held.token_ids.size()) * sizeof(std::int32_t);
  for (const std::size_t most : {std::size_t{1}, std::size_t{150}, bytes - 1}) {
    const EncodedDataset spilled = read_triples(file, encoder, {.directory = directory, .held_bytes = most}).encoded;
    REQUIRE(spilled.token_ids.is_spilled());
    CHECK(std::filesystem::is_empty(directory));
    CHECK(spilled.bytes() == 0);
    REQUIRE(spilled.size() == held.size());
    for (std::int64_t i = 0; i < held.size(); ++i) {
      CHECK(ids_of(spilled, i) == ids_of(held, i));
      CHECK(spilled.first_length(i) == held.first_length(i));
      spilled.let_go();
    }
    CHECK(spilled.begin(held.size()) == held.token_ids.size());
  }
  const auto is_spilled = [&](const io::SpillPlace& place) {
    return read_triples(file, encoder, place).encoded.token_ids.is_spilled();
  };
  CHECK_FALSE(is_spilled({.directory = directory}));  // few enough
  CHECK_FALSE(is_spilled({.directory = setting.directory / "none", .held_bytes = 1}));
}

TEST_CASE("reading triples and candidates ends when the process is asked to leave") {
  const Setting setting;
  RankingEncoder encoder(setting.tokenizer, {});
  const io::LeaveRequest leave;
  CHECK(support::refusal(Failure::interrupted, [&] {
          read_triples(setting.file("a\tb\tc\n"), encoder);
        }).starts_with("interrupted while reading triples: nothing was written"));
  CHECK(support::refusal(Failure::interrupted, [&] {
          CandidateList list(setting.file("1\t10\ta\tb\n"));
        }).starts_with("interrupted while reading candidates: nothing was written"));
}

TEST_CASE("a byte order mark is no part of the first query of triples or of the first id of candidates") {
  const Setting setting;
  RankingEncoder encoder(setting.tokenizer, {});
  const Triples triples = read_triples(setting.file("\xEF\xBB\xBF"
                                                    "a\tb\tc\n"),
                                       encoder);
  CHECK(ids_of(triples.encoded, 0) == Ids{2, 5, 3, 6, 3});
  CHECK(CandidateList(setting.file("\xEF\xBB\xBF"
                                   "1\t10\ta\tb\n1\t11\ta\tc\n"))
            .queries() == std::vector<std::string>{"1"});
}

TEST_CASE("what is no UTF-8 in queries and passages of candidates is counted, the first with its column in the line") {
  const Setting setting;
  const auto invalid = [&](const std::string& text) { return CandidateList(setting.file(text)).invalid(); };
  const text::InvalidBytes both = invalid("7\tp1\ta\tb\n7\tp2\ta\xFF\tb\xFE\n");
  CHECK(both.count == 2);
  CHECK(both.first_line == 2);
  CHECK(both.first_column == 7);
  const text::InvalidBytes passage = invalid("7\tp1\ta\tb\xFE\n");
  CHECK(passage.count == 1);
  CHECK(passage.first_column == 9);
}
