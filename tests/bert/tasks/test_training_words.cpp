// A file of words to train on, held in memory and on the disk.
#include "bert/tasks/training_words.h"

#include <doctest/doctest.h>

#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[UNK]\n[MASK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\n##s\n", "vocab.txt")};

  Setting() { std::filesystem::create_directory(place()); }
  std::filesystem::path place() const { return directory / "run"; }
  TokenData read(const std::string& text, TaskFiles files = {}) const {
    files.train = directory / "train";
    support::write_text(files.train, text);
    const TokenOptions options{.task = TokenTask::ner, .columns = {}, .windows = {.max_length = 6, .overlap = 2}};
    return read_token_data(options, files, {}, tokenizer);
  }
  std::vector<TaskFiles> places() const {
    return {
        {}, {.spill = {.directory = place(), .held_bytes = 1}}, {.spill = {.directory = place(), .held_bytes = 90}}};
  }
};

std::string many_sentences() {
  std::string text;
  for (int s = 0; s < 30; ++s) {
    for (int w = 0; w <= s % 5; ++w)
      text += std::string(1, "abcde"[(s + w) % 5]) + (w % 2 == 0 ? "s" : "") + (w == 1 ? " B-X\n" : " O\n");
    text += "\n";
  }
  return text;
}

void check_same(const EncodedDataset& a, const EncodedDataset& b) {
  REQUIRE(a.size() == b.size());
  for (std::int64_t i = 0; i < a.size(); ++i) {
    CHECK(std::ranges::equal(a.ids(i), b.ids(i)));
    CHECK(std::ranges::equal(a.targets_at(a.begin(i), a.tokens(i)), b.targets_at(b.begin(i), b.tokens(i))));
    CHECK(a.first_length(i) == b.first_length(i));
    b.let_go();
  }
}

}  // namespace

TEST_CASE("words to train on give the same windows and targets from memory and from the disk") {
  const Setting setting;
  const TokenData held = setting.read(many_sentences());
  CHECK(held.train->sentences == 30);
  CHECK(held.train->words == 90);
  CHECK(held.train->cut == 18);
  CHECK(held.train->common.share == doctest::Approx(66.0 / 90));
  for (const TaskFiles& files : setting.places()) {
    const TokenData data = setting.read(many_sentences(), files);
    CHECK(data.train->windows.token_ids.is_spilled() == !files.spill.directory.empty());
    check_same(held.train->windows, data.train->windows);
    CHECK(data.remarks() == held.remarks());
    CHECK(data.bytes() == 0);
  }
  CHECK(std::filesystem::is_empty(setting.place()));
}

TEST_CASE("held-out sentences keep words, labels and lines and are gone from those to train on") {
  const Setting setting;
  for (TaskFiles files : setting.places()) {
    files.held_out = {.share = 0.1, .seed = 5};
    const TokenData data = setting.read(many_sentences(), files);
    const TokenSplit& taken = *data.evaluation;
    REQUIRE(taken.sentences == 3);
    CHECK(data.train->sentences == 27);
    CHECK(data.train->words + taken.words == 90);
    CHECK(taken.list.words() == taken.words);
    CHECK(taken.labels.size() == static_cast<std::int64_t>(taken.words));
    CHECK(taken.tokens.size() == static_cast<std::int64_t>(taken.words));
    std::vector<std::int64_t> first;
    taken.list.for_each([&](std::size_t, const TokenFile& sentence) { first.push_back(sentence.lines.front()); });
    CHECK(first == std::vector<std::int64_t>{1, 70, 115});  // which sentences these are must never change
    CHECK(taken.list.where() == (setting.directory / "train").string() + ":1");
  }
}

TEST_CASE("a bad line to train on is named, and all of them once if they are kept apart") {
  const Setting setting;
  const std::string file = setting.directory / "train", text = "a O\nb\nc B-X\n\nd O e\ne O\n";
  for (TaskFiles files : setting.places()) {
    CHECK(support::refusal(Failure::input, [&] { setting.read(text, files); }) ==
          file + ":2: columns: expected 2 as in line 1, got 1");
    files.on_bad = OnBadRow::keep;
    const TokenData data = setting.read(text, files);
    CHECK(data.bad_rows == std::vector<std::string>{file + ":2: columns: expected 2 as in line 1, got 1",
                                                    file + ":5: columns: expected 2 as in line 1, got 3"});
    CHECK(data.train->sentences == 2);
    CHECK(data.train->words == 3);
  }
}

TEST_CASE("a file of words that changes while it is read is refused") {
  const Setting setting;
  const std::filesystem::path file = setting.directory / "train";
  const TokenOptions options{.task = TokenTask::ner, .columns = {}, .windows = {.max_length = 6, .overlap = 2}};
  const TaskFiles files{.train = file};
  SentenceEncoder encoder(setting.tokenizer, options.windows);
  SentenceList none;
  const auto refusal = [&](const char* later) {
    support::write_text(file, "a O\n\nb B-X\n");
    const TrainingWords words(options, files, nullptr);
    support::write_text(file, later);
    return support::refusal(Failure::input, [&] { words.encode(words.labels(), encoder, none); });
  };
  CHECK(refusal("a O\n") == file.string() + ": expected 2 sentences as before, got 1");
  CHECK(refusal("a O\n\nb B-X\n\na O\n") == file.string() + ": expected 2 sentences as before, got more");
  CHECK(refusal("a O\n\nb X\n") == file.string() + ":3: label: expected one of {B-X,O}, got \"X\"");
}

TEST_CASE("a first line without a label that is kept apart takes no label from the others") {
  const Setting setting;
  const TokenData data = setting.read("fish\na O\nb B-X\n", {.on_bad = OnBadRow::keep});
  CHECK(data.bad_rows.size() == 1);
  CHECK(data.train->sentences == 1);
  CHECK(data.train->words == 2);
}
