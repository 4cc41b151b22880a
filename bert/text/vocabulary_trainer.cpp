// Pieces merged pair by pair.
#include "bert/text/vocabulary_trainer.h"

#include <algorithm>
#include <compare>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "bert/text/utf8.h"
#include "io/error.h"
#include "io/seeded_hash.h"

namespace bertrand::text {
namespace {

using Piece = std::uint32_t;  // the number of a token

std::vector<char32_t> code_points(const std::string& word) {
  std::vector<char32_t> list;
  for (const char *p = word.data(), *end = p + word.size(); p < end;) list.push_back(decode_utf8(p));
  return list;
}

std::string utf8(char32_t c) {
  char bytes[4];
  return {bytes, encode_utf8(c, bytes)};
}

/// Two neighbouring pieces.
struct Pair {
  Piece left, right;
  auto operator<=>(const Pair&) const = default;  // NOLINT(modernize-use-nullptr): its zero is no pointer
};

struct PairHash {
  std::size_t operator()(const Pair& pair) const {
    return ((std::uint64_t{pair.left} << 32) | pair.right) * 0x9E3779B97F4A7C15u >> 16;
  }
};

/// Where a pair occurs, and how often. A word stays listed when the pair is gone from it.
struct Occurrences {
  std::int64_t count = 0;
  std::vector<std::uint32_t> words;
};

/// A pair as frequent as it was when it was put in the queue.
struct Candidate {
  std::int64_t count;
  Pair pair;
  bool operator<(const Candidate& other) const { return std::tie(count, other.pair) < std::tie(other.count, pair); }
};

struct Word {
  std::vector<Piece> pieces;
  std::int64_t count;
};

class VocabularyTrainer {
 public:
  VocabularyTrainer(const VocabularyTrainerOptions& options, LeftOutCharacters* left_out)
      : options_(options), left_out_(left_out) {
    for (const char* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) token(special);
  }

  std::vector<std::string> train(const WordCounts& counts) {
    load(counts.sorted());
    for (std::uint32_t word = 0; word < words_.size(); ++word) {
      const std::vector<Piece>& pieces = words_[word].pieces;
      for (std::size_t i = 1; i < pieces.size(); ++i) add({pieces[i - 1], pieces[i]}, words_[word].count, word);
    }
    for (const auto& [pair, occurrences] : pairs_) queue_.push({occurrences.count, pair});
    while (tokens_.size() < options_.size && merge_best()) {
      if (options_.progress) options_.progress(tokens_.size());
    }
    return std::move(tokens_);
  }

 private:
  // The number of a token, new or old: two merges can make the same piece.
  Piece token(const std::string& text) {
    const auto [entry, is_new] = numbers_.emplace(text, static_cast<Piece>(tokens_.size()));
    if (is_new) tokens_.push_back(text);
    return entry->second;
  }

  void load(const std::vector<std::pair<std::string, std::uint64_t>>& counted);
  bool merge_best();
  void merge_in(std::uint32_t word, const Pair& pair, Piece merged);

  void add(const Pair& pair, std::int64_t count, std::uint32_t word) {
    Occurrences& occurrences = pairs_[pair];
    occurrences.count += count;
    if (occurrences.words.empty() || occurrences.words.back() != word) occurrences.words.push_back(word);
  }
  void add_merged(const Pair& pair, std::int64_t count, std::uint32_t word) {
    add(pair, count, word);
    touched_.push_back(pair);
  }
  void remove(const Pair& pair, std::int64_t count) { pairs_[pair].count -= count; }

  const VocabularyTrainerOptions& options_;
  LeftOutCharacters* const left_out_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, Piece, io::SeededHash> numbers_;
  std::vector<Word> words_;
  std::unordered_map<Pair, Occurrences, PairHash> pairs_;
  std::priority_queue<Candidate> queue_;
  std::vector<Pair> touched_;  // pairs that became more frequent since they were queued
};

void VocabularyTrainer::load(const std::vector<std::pair<std::string, std::uint64_t>>& counted) {
  if (counted.empty()) fail(Failure::input, "vocabulary: expected text with words, got none");
  std::map<char32_t, std::uint64_t> frequencies;
  for (const auto& [word, count] : counted) {
    for (const char32_t c : code_points(word)) frequencies[c] += count;
  }
  std::vector<std::pair<char32_t, std::uint64_t>> by_frequency(frequencies.begin(), frequencies.end());
  std::ranges::stable_sort(by_frequency, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::set<char32_t> alphabet;
  std::uint64_t kept = 0, all = 0;
  for (const auto& [c, count] : by_frequency) {
    all += count;
    if (alphabet.size() == options_.limit_alphabet) continue;
    alphabet.insert(c);
    kept += count;
  }
  if (left_out_)
    *left_out_ = {.count = by_frequency.size() - alphabet.size(),
                  .share = static_cast<double>(all - kept) / static_cast<double>(all)};

  // A word with any other character will be [UNK] as a whole, so nothing is learnt from it.
  std::set<char32_t> inner;  // what occurs after the first character of a word
  std::vector<std::pair<std::vector<char32_t>, std::uint64_t>> usable;
  for (const auto& [word, count] : counted) {
    std::vector<char32_t> characters = code_points(word);
    if (!std::ranges::all_of(characters, [&](char32_t c) { return alphabet.contains(c); })) continue;
    inner.insert(characters.begin() + 1, characters.end());
    usable.emplace_back(std::move(characters), count);
  }
  for (const char32_t c : alphabet) token(utf8(c));
  for (const char32_t c : inner) token("##" + utf8(c));
  if (tokens_.size() > options_.size) {
    fail(Failure::usage,
         "--size: expected at least {} for the special tokens and the alphabet of this text, got {}; {}",
         tokens_.size(), options_.size, "hint: --limit-alphabet takes fewer characters");
  }
  for (const auto& [characters, count] : usable) {
    Word word{.pieces = {}, .count = static_cast<std::int64_t>(count)};
    for (const char32_t c : characters) word.pieces.push_back(token(word.pieces.empty() ? utf8(c) : "##" + utf8(c)));
    words_.push_back(std::move(word));
  }
}

// Makes the most frequent pair a piece; false if none is frequent enough.
bool VocabularyTrainer::merge_best() {
  while (!queue_.empty()) {
    const Candidate best = queue_.top();
    queue_.pop();
    const auto found = pairs_.find(best.pair);
    if (found == pairs_.end()) continue;
    const std::int64_t count = found->second.count;
    if (count < static_cast<std::int64_t>(std::max<std::uint64_t>(options_.min_frequency, 1))) continue;
    if (count != best.count) {  // it became less frequent while it waited
      queue_.push({count, best.pair});
      continue;
    }
    const std::vector<std::uint32_t> words = std::move(found->second.words);
    pairs_.erase(found);
    const Piece merged = token(tokens_[best.pair.left] + tokens_[best.pair.right].substr(2));
    touched_.clear();  // for speed alone: a pair may be queued twice
    for (const std::uint32_t word : words) merge_in(word, best.pair, merged);
    std::ranges::sort(touched_);
    // Each is queued once for speed alone.
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (const Pair& pair : touched_) queue_.push({pairs_[pair].count, pair});
    return true;
  }
  return false;
}

void VocabularyTrainer::merge_in(std::uint32_t number, const Pair& pair, Piece merged) {
  Word& word = words_[number];
  std::vector<Piece>& pieces = word.pieces;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < pieces.size(); ++kept) {
    if (i + 1 == pieces.size() || pieces[i] != pair.left || pieces[i + 1] != pair.right) {
      pieces[kept] = pieces[i++];
      continue;
    }
    if (kept > 0) {
      remove({pieces[kept - 1], pair.left}, word.count);
      add_merged({pieces[kept - 1], merged}, word.count, number);
    }
    if (i + 2 < pieces.size()) {
      remove({pair.right, pieces[i + 2]}, word.count);
      add_merged({merged, pieces[i + 2]}, word.count, number);
    }
    pieces[kept] = merged;
    i += 2;
  }
  pieces.resize(kept);
}

}  // namespace

std::vector<std::string> train_vocabulary(const WordCounts& counts, const VocabularyTrainerOptions& options,
                                          LeftOutCharacters* left_out) {
  return VocabularyTrainer(options, left_out).train(counts);
}

}  // namespace bertrand::text
