#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <set>

#include "bert/data/pretraining_text.h"
#include "bert/data/pretraining_text_corpus.h"
#include "io/error.h"
#include "io/signals.h"
#include "support/growth.h"

using namespace bertrand;
using namespace bertrand::data;

namespace {

text::Tokenizer tiny_tokenizer() {
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (char c = 'a'; c <= 'z'; ++c) words += std::string(1, c) + "\n##" + c + "\n";
  return text::Tokenizer(text::Vocabulary::parse(words, "vocab.txt"));
}

/// A file that is removed with this.
class TextFile {
 public:
  TextFile(const std::string& name, const std::string& contents)
      : path_(std::filesystem::temp_directory_path() / ("bertrand_" + std::to_string(getpid()) + "_" + name)) {
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~TextFile() { std::filesystem::remove(path_); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// `documents` documents of `sentences` lines, all different.
std::string some_text(int documents, int sentences) {
  std::string text;
  for (int d = 0; d < documents; ++d) {
    for (int s = 0; s < sentences; ++s) {
      for (int w = 0; w <= (d * 7 + s * 5) % 9; ++w)
        text += std::string(1, static_cast<char>('a' + (d + s + w) % 26)) + (w % 3 == 2 ? "" : " ");
      text += "\n";
    }
    text += "\n";
  }
  return text;
}

bool equal(const PretrainingExample& a, const PretrainingExample& b) {
  return a.token_ids == b.token_ids && a.token_types == b.token_types && a.masked_positions == b.masked_positions &&
         a.masked_ids == b.masked_ids && a.next_sentence_label == b.next_sentence_label;
}

std::shared_ptr<const CorpusView> held(const std::vector<std::filesystem::path>& files,
                                       const text::Tokenizer& tokenizer) {
  return std::make_shared<HeldCorpus>(read_corpus(files, tokenizer, {}), tokenizer.vocabulary().size());
}

}  // namespace

TEST_CASE("an example is [CLS] A [SEP] B [SEP] no longer than asked, with types, masks and a label") {
  const TextFile file("examples.txt", some_text(20, 12));
  const text::Tokenizer tokenizer = tiny_tokenizer();
  PretrainingText text(held({file.path()}, tokenizer), tokenizer.vocabulary(),
                       {.pairs = {.max_seq_length = 24}, .seed = 3});
  REQUIRE(text.examples(0) > 20);
  for (std::int64_t i = 0; i < text.examples(0); ++i) {
    const PretrainingExample e = text.example(0, i);
    CHECK(e.token_ids.size() <= 24);
    CHECK(static_cast<std::int64_t>(e.token_ids.size()) == text.tokens(0, i));
    CHECK(static_cast<std::int64_t>(e.masked_positions.size()) == text.masked(0, i));
    CHECK(e.token_ids.front() == 2);
    CHECK(e.token_ids.back() == 3);
    CHECK(e.token_types.front() == 0);
    CHECK(e.token_types.back() == 1);
    CHECK(e.token_types.size() == e.token_ids.size());
  }
}

TEST_CASE("an epoch's examples are the same whenever they are asked for, and other epochs and seeds have others") {
  const TextFile file("epochs.txt", some_text(20, 12));
  const text::Tokenizer tokenizer = tiny_tokenizer();
  PretrainingText a(held({file.path()}, tokenizer), tokenizer.vocabulary(),
                    {.pairs = {.max_seq_length = 24}, .seed = 3});
  PretrainingText b(held({file.path()}, tokenizer), tokenizer.vocabulary(),
                    {.pairs = {.max_seq_length = 24}, .seed = 3, .threads = 3});
  PretrainingText other(held({file.path()}, tokenizer), tokenizer.vocabulary(),
                        {.pairs = {.max_seq_length = 24}, .seed = 4});
  a.example(5, 0);  // another epoch first
  int same_in_next_epoch = 0, same_with_other_seed = 0;
  const std::int64_t count = b.examples(0);
  for (std::int64_t i = 0; i < count; ++i) {
    const PretrainingExample e = b.example(0, i);
    CHECK(equal(e, a.example(0, i)));
    if (i < a.examples(1)) same_in_next_epoch += equal(e, a.example(1, i));
    if (i < other.examples(0)) same_with_other_seed += equal(e, other.example(0, i));
  }
  CHECK(same_in_next_epoch < count / 10);
  CHECK(same_with_other_seed < count / 10);
}

TEST_CASE("other epochs and seeds draw other pairs, and mask the same pair elsewhere") {
  const text::Tokenizer tokenizer = tiny_tokenizer();
  const auto text_of = [&](const TextFile& file, std::int64_t length, std::uint64_t seed) {
    return PretrainingText(held({file.path()}, tokenizer), tokenizer.vocabulary(),
                           {.pairs = {.max_seq_length = length}, .seed = seed});
  };
  const TextFile many("pairs.txt", some_text(20, 12));
  const auto pairs_of = [&](std::int64_t epoch, std::uint64_t seed) {
    PretrainingText text = text_of(many, 24, seed);
    std::vector<std::int64_t> pairs;
    for (std::int64_t i = 0; i < text.examples(epoch); ++i) {
      pairs.push_back(text.tokens(epoch, i));
      pairs.push_back(text.example(epoch, i).next_sentence_label);
    }
    return pairs;
  };
  CHECK(pairs_of(0, 3) != pairs_of(1, 3));
  CHECK(pairs_of(0, 3) != pairs_of(0, 4));

  // Two documents of one sentence: each example is both sentences, whatever is drawn.
  const TextFile two("two.txt", "a b c d e f g h i j\n\nk l m n o p q r s t\n");
  std::set<std::vector<std::int32_t>> unmasked, by_epoch, by_seed;
  const auto look = [&](std::int64_t epoch, std::uint64_t seed, std::set<std::vector<std::int32_t>>& positions) {
    PretrainingExample e = text_of(two, 64, seed).example(epoch, 0);
    positions.insert(e.masked_positions);
    for (std::size_t i = 0; i < e.masked_positions.size(); ++i)
      e.token_ids[static_cast<std::size_t>(e.masked_positions[i])] = e.masked_ids[i];
    unmasked.insert(e.token_ids);
  };
  for (int i = 0; i < 10; ++i) look(i, 3, by_epoch);
  for (std::uint64_t i = 0; i < 10; ++i) look(0, i, by_seed);
  CHECK(unmasked.size() == 1);
  CHECK(by_epoch.size() > 1);
  CHECK(by_seed.size() > 1);
}

TEST_CASE("documents that look alike have pairs of their own, and examples that look alike other masks") {
  std::string lines;
  for (const char* sentence : {"a a a\n", "b b b\n"}) {
    for (int i = 0; i < 60; ++i) lines += sentence;
    lines += "\n";
  }
  const TextFile file("alike.txt", lines);
  const text::Tokenizer tokenizer = tiny_tokenizer();
  PretrainingText text(held({file.path()}, tokenizer), tokenizer.vocabulary(),
                       {.pairs = {.max_seq_length = 24}, .seed = 3});
  std::vector<std::vector<std::int32_t>> pairs[2];
  std::map<std::vector<std::int32_t>, std::set<std::vector<std::int32_t>>> masked_of;
  for (std::int64_t i = 0; i < text.examples(0); ++i) {
    const PretrainingExample e = text.example(0, i);
    const bool first_is_masked = !e.masked_positions.empty() && e.masked_positions[0] == 1;
    const std::int32_t first = first_is_masked ? e.masked_ids[0] : e.token_ids[1];
    pairs[first == 5 ? 0 : 1].push_back(e.token_types);  // 5 is a
    masked_of[e.token_types].insert(e.masked_positions);
  }
  REQUIRE(pairs[0].size() > 5);
  CHECK(pairs[0] != pairs[1]);
  CHECK(std::ranges::any_of(masked_of, [](const auto& of_shape) { return of_shape.second.size() > 1; }));
}

TEST_CASE("an example of a long document takes no longer than one of a short document") {
  const text::Tokenizer tokenizer = tiny_tokenizer();
  const auto of_documents = [&](int sentences) {
    const TextFile file("long.txt", some_text(2, sentences));
    return PretrainingText(held({file.path()}, tokenizer), tokenizer.vocabulary(), {.pairs = {.max_seq_length = 24}});
  };
  PretrainingText shorter = of_documents(10'000), longer = of_documents(40'000);
  std::int64_t other = 0;  // what was asked for before is kept
  const auto draw_some = [&](int size) {
    PretrainingText& text = size == 1 ? shorter : longer;
    for (std::int64_t i = 0; i < 200; ++i) text.example(0, i * (text.examples(0) / 200) + other);
    ++other;
  };
  for (const int size : {1, 4}) draw_some(size);  // now the examples of the epoch are counted
  CHECK(support::growth_by_four(1, draw_some) < 2);
}

TEST_CASE("threads that ask for two epochs at once get what each alone gets") {
  const TextFile file("threads.txt", some_text(20, 12));
  const text::Tokenizer tokenizer = tiny_tokenizer();
  PretrainingText alone(held({file.path()}, tokenizer), tokenizer.vocabulary(), {}),
      together(held({file.path()}, tokenizer), tokenizer.vocabulary(), {});
  for (std::int64_t epoch = 0; epoch < 6; ++epoch) {
    auto next = std::async(std::launch::async, [&] { return together.example(epoch + 1, 3); });
    CHECK(equal(together.example(epoch, 3), alone.example(epoch, 3)));
    CHECK(equal(next.get(), alone.example(epoch + 1, 3)));
  }
}

TEST_CASE("an example hides the pieces of a word together or not at all if whole words are asked for") {
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += i % 30 == 0 ? "\n" : "ab cd efg xyz\n";
  const TextFile file("words.txt", lines);
  const text::Tokenizer tokenizer = tiny_tokenizer();
  PretrainingText text(held({file.path()}, tokenizer), tokenizer.vocabulary(),
                       {.pairs = {.max_seq_length = 40}, .masking = {.whole_words = true}, .seed = 3});
  int hidden = 0;
  for (std::int64_t i = 0; i < text.examples(0); ++i) {
    PretrainingExample e = text.example(0, i);
    std::vector<int> is_hidden(e.token_ids.size());
    for (std::size_t m = 0; m < e.masked_positions.size(); ++m) {
      is_hidden[static_cast<std::size_t>(e.masked_positions[m])] = 1;
      e.token_ids[static_cast<std::size_t>(e.masked_positions[m])] = e.masked_ids[m];
    }
    for (std::size_t t = 1; t < e.token_ids.size(); ++t) {
      const bool goes_on = e.token_ids[t] > 4 && e.token_ids[t] % 2 == 0;  // 5 is a, 6 is ##a
      if (!goes_on || e.token_ids[t - 1] <= 4) continue;                   // a segment may begin within a word
      CHECK(is_hidden[t] == is_hidden[t - 1]);
      hidden += is_hidden[t];
    }
  }
  CHECK(hidden > 10);
}

TEST_CASE("a single document gives no examples, however it was read") {
  const TextFile one("single.txt", "a b\nc d\n");
  const text::Tokenizer tokenizer = tiny_tokenizer();
  const auto corpus = std::make_shared<HeldCorpus>(read_corpus({one.path()}, tokenizer, {.as_google = true}),
                                                   tokenizer.vocabulary().size());
  REQUIRE(corpus->documents() == 1);
  CHECK_THROWS_AS(PretrainingText(corpus, tokenizer.vocabulary(), {}), Error);
}

TEST_CASE("the memory of text is said to be that of its ids and sentences and of the epochs that were asked for") {
  std::string lines;
  for (int i = 0; i < 40'000; ++i) lines += i % 20'000 == 19'999 ? "a\n\n" : "a\n";
  const TextFile file("memory.txt", lines);
  const text::Tokenizer tokenizer = tiny_tokenizer();
  const std::shared_ptr<const CorpusView> corpus = held({file.path()}, tokenizer);
  const std::size_t sentences = 40'000, own = sentences * (2 + 8);  // an id and a place each
  REQUIRE(corpus->sentences() == sentences);
  CHECK(corpus->bytes() >= own);
  CHECK(corpus->bytes() <= 3 * own);
  PretrainingText text(corpus, tokenizer.vocabulary(), {.pairs = {.max_seq_length = 24}});
  const std::size_t before = text.bytes();
  CHECK(before >= corpus->bytes() + (std::size_t{1} << 18));  // thousands of pairs that were drawn last
  CHECK(before <= corpus->bytes() + (std::size_t{1} << 20));
  text.examples(0);
  const std::size_t marks = text.bytes() - before;
  CHECK(marks >= 32 * (sentences / 1100));  // 32 bytes for each thousand sentences
  CHECK(marks <= 4 * 32 * (sentences / 1000));
}

TEST_CASE("the label of an example is 0 where B goes on after A and 1 where it is from another document") {
  std::string lines;  // a document of words of one piece, and one of words of two
  for (char c = 'a'; c <= 'z'; ++c) lines += std::string(1, c) + "\n";
  lines += "\n";
  for (char c = 'a'; c <= 'z'; ++c) lines += std::string(2, c) + "\n";
  const TextFile file("labels.txt", lines);
  const text::Tokenizer tokenizer = tiny_tokenizer();
  PretrainingText text(held({file.path()}, tokenizer), tokenizer.vocabulary(),
                       {.pairs = {.max_seq_length = 64, .short_seq_prob = 0}, .seed = 3});
  int next = 0, random = 0;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch)
    for (std::int64_t i = 0; i < text.examples(epoch); ++i) {
      PretrainingExample e = text.example(epoch, i);
      for (std::size_t m = 0; m < e.masked_positions.size(); ++m)
        e.token_ids[static_cast<std::size_t>(e.masked_positions[m])] = e.masked_ids[m];
      std::vector<std::int32_t> segments[2];
      for (std::size_t t = 0; t < e.token_ids.size(); ++t)
        if (e.token_ids[t] > 4) segments[e.token_types[t]].push_back(e.token_ids[t]);
      REQUIRE_FALSE(segments[0].empty());
      REQUIRE_FALSE(segments[1].empty());
      const auto of_two = [](const std::vector<std::int32_t>& ids) {
        return std::ranges::any_of(ids, [](std::int32_t id) { return id % 2 == 0; });  // 5 is a, 6 is ##a
      };
      const bool same_document = of_two(segments[0]) == of_two(segments[1]);
      CHECK(e.next_sentence_label == (same_document ? 0 : 1));
      if (same_document && !of_two(segments[0])) CHECK(segments[1].front() == segments[0].back() + 2);
      ++(same_document ? next : random);
    }
  CHECK(next > 10);
  CHECK(random > 10);
}

TEST_CASE("a pair that is too long loses tokens of its longer segment, now at the front and now at the back") {
  const TextFile file("long_pair.txt", "a b c d e f g h i j k l m\n\nn o p q r s t u v w x y z\n");
  const text::Tokenizer tokenizer = tiny_tokenizer();
  // Of A and B: how many tokens stay, and how many are gone from the front.
  struct Rest {
    std::ptrdiff_t count, gone;
  };
  const auto rests_of = [&](std::int64_t longest, std::int64_t epoch) {
    PretrainingText text(held({file.path()}, tokenizer), tokenizer.vocabulary(),
                         {.pairs = {.max_seq_length = longest, .short_seq_prob = 0}, .seed = 3});
    PretrainingExample e = text.example(epoch, 0);
    for (std::size_t m = 0; m < e.masked_positions.size(); ++m)
      e.token_ids[static_cast<std::size_t>(e.masked_positions[m])] = e.masked_ids[m];
    const auto a = e.token_ids.begin() + 1, b = std::ranges::find(e.token_ids, 3) + 1, end = e.token_ids.end() - 1;
    for (auto id = a; id != end; ++id) CHECK((id + 1 == b || id[1] == 3 || id[1] == *id + 2));  // 5 is a, 7 is b
    return std::pair(Rest{b - 1 - a, (*a - 5) / 2}, Rest{end - b, (*b - 5) / 2 - 13});
  };
  double gone_of_a = 0, gone_of_b = 0;
  for (std::int64_t epoch = 0; epoch < 200; ++epoch) {
    const auto [a, b] = rests_of(13, epoch);
    CHECK(a.count == 5);
    CHECK(b.count == 5);
    gone_of_a += static_cast<double>(a.gone) / 200, gone_of_b += static_cast<double>(b.gone) / 200;
  }
  CHECK(gone_of_a == doctest::Approx(4).epsilon(0.1));  // of the eight that each loses
  CHECK(gone_of_b == doctest::Approx(4).epsilon(0.1));
  const auto [a, b] = rests_of(28, 0);  // one too many: of two that are equally long it is B that loses it
  CHECK(a.count == 13);
  CHECK(b.count == 12);
}

TEST_CASE("counting the examples of a long text ends when the process is asked to leave") {
  std::string lines;
  for (int i = 0; i < 100'000; ++i) lines += i % 50'000 == 49'999 ? "a\n\n" : "a\n";
  const TextFile file("left.txt", lines);
  const text::Tokenizer tokenizer = tiny_tokenizer();
  const std::shared_ptr<const CorpusView> corpus = held({file.path()}, tokenizer);
  const pid_t child = ::fork();
  if (child == 0) {
    io::catch_stop_signals(io::OnStop::leave);
    std::raise(SIGTERM);
    try {
      PretrainingText(corpus, tokenizer.vocabulary(), {.pairs = {.max_seq_length = 24}}).examples(0);
    } catch (const Error& error) {
      ::_exit(error.failure() == Failure::interrupted ? 75 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 75));
}
