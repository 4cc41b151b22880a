// Words to ids, with a cache of words.
#include "bert/text/tokenizer.h"

#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "bert/text/pieces.h"
#include "bert/text/words.h"
#include "io/say.h"

namespace bertrand::text {
namespace {

AddedTokenFinder whole_tokens(const Vocabulary& vocabulary, const TokenizerOptions& options) {
  std::vector<AddedToken> tokens = options.added_tokens;
  if (options.keep_special_tokens)
    for (const std::string_view special : kSpecialTokens)
      if (const std::int32_t id = vocabulary.find(special); id >= 0)
        tokens.push_back({.text = std::string(special), .id = id});
  return {std::move(tokens), options.lower_case};
}

// The ids of words seen before. A word of up to 16 bytes with up to 3 pieces has one slot, which the next word that
// falls on it takes over: bounded, nothing to maintain, and the frequent words of a language stay.
class WordCache {
 public:
  struct Key {
    std::uint64_t low, high;  // the word's bytes, zeros after them
    bool operator==(const Key&) const = default;
  };
  struct Slot {
    Key key{0, 0};
    std::int32_t count = 0;
    std::array<std::int32_t, 3> ids{};
  };
  static constexpr std::size_t kMaxBytes = 16;

  WordCache() : slots_(std::size_t{1} << kSlotBits) {}

  // At least 16 bytes can be read from the word's beginning, whatever its size.
  static Key key_of(std::string_view word) {
    Key key;
    std::memcpy(&key, word.data(), 16);
    if (word.size() <= 8) {
      key.high = 0;
      key.low &= ~std::uint64_t{0} >> (64 - 8 * word.size());
    } else {
      key.high &= ~std::uint64_t{0} >> (128 - 8 * word.size());
    }
    return key;
  }

  Slot& slot(const Key& key) {
    const std::uint64_t mixed = (key.low ^ (key.high * 0xC2B2AE3D27D4EB4F)) * 0x9E3779B97F4A7C15;
    return slots_[(mixed ^ (mixed >> 29)) * 0xBF58476D1CE4E5B9 >> (64 - kSlotBits)];
  }

 private:
  static constexpr unsigned kSlotBits = 15;
  std::vector<Slot> slots_;
};

}  // namespace

struct CachingTokenizer::State {
  explicit State(const Tokenizer& its_tokenizer)
      : tokenizer(its_tokenizer), splitter(its_tokenizer.options().lower_case) {}

  // `places`, if it is not null, gets a place for each id.
  void encode(std::string_view text, std::vector<std::string_view>* places);
  void encode_plain(std::string_view text, std::vector<std::string_view>* places);
  void encode_word(std::string_view word, std::size_t characters);
  void encode_with_places(std::string_view text, std::vector<std::string_view>& places);

  const Tokenizer& tokenizer;
  WordSplitter splitter;
  Words words;
  std::optional<WordCache> cache;  // from the second text on: for a single one it does not pay
  std::uint64_t texts = 0;
  std::vector<std::int32_t> ids;
  DroppedBytes dropped;
};

void CachingTokenizer::State::encode_word(std::string_view word, std::size_t characters) {
  if (characters > static_cast<std::size_t>(tokenizer.options_.max_chars_per_word)) {
    ids.push_back(tokenizer.vocabulary_.unk_id());
    return;
  }
  if (!cache || word.size() > WordCache::kMaxBytes) {
    tokenizer.pieces_->cut(word, ids);
    return;
  }
  const WordCache::Key key = WordCache::key_of(word);
  WordCache::Slot& slot = cache->slot(key);
  if (!(slot.key == key)) {
    const std::size_t before = ids.size();
    tokenizer.pieces_->cut(word, ids);
    const std::size_t count = ids.size() - before;
    if (count > slot.ids.size()) return;
    // The key is set for speed alone: without it the word is cut anew each time.
    slot.key = key;
    slot.count = static_cast<std::int32_t>(count);
    std::copy(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), slot.ids.begin());
    return;
  }
  ids.insert(ids.end(), slot.ids.begin(), slot.ids.begin() + slot.count);
}

void CachingTokenizer::State::encode_plain(std::string_view text, std::vector<std::string_view>* places) {
  words.clear();
  const DroppedBytes here = splitter.split(text, words);
  if (dropped.count == 0) dropped.first = here.first;
  dropped.count += here.count;
  if (places) {
    encode_with_places(text, *places);
  } else {
    for (const Words::Word& word : words.list()) encode_word(words.bytes(word), word.characters);
  }
}

void CachingTokenizer::State::encode_with_places(std::string_view text, std::vector<std::string_view>& places) {
  const std::vector<std::string_view> characters = character_places(text, tokenizer.options_.lower_case);
  std::size_t word_begin = 0;  // in characters
  for (const Words::Word& word : words.list()) {
    std::size_t piece = ids.size(), begin = word_begin;
    encode_word(words.bytes(word), word.characters);
    for (word_begin += word.characters; piece < ids.size(); ++piece) {
      std::string_view token = tokenizer.vocabulary_.token(ids[piece]);
      if (begin > word_begin - word.characters) token.remove_prefix(2);  // ##
      const bool whole = ids[piece] == tokenizer.vocabulary_.unk_id();
      const std::size_t end = whole ? word_begin : begin + static_cast<std::size_t>(count_code_points(token));
      places.emplace_back(characters[begin].data(), characters[end - 1].data() + characters[end - 1].size());
      begin = end;
    }
  }
}

void CachingTokenizer::State::encode(std::string_view text, std::vector<std::string_view>* places) {
  // Words are remembered for speed alone.
  if (++texts == 2) cache.emplace();
  ids.clear();
  dropped = {};
  const AddedTokenFinder& whole = tokenizer.whole_;
  if (whole.empty()) {
    encode_plain(text, places);
    return;
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const AddedTokenFinder::Found found = whole.next(text, begin);
    const bool had_dropped = dropped.count > 0;
    encode_plain(text.substr(begin, found.begin - begin), places);
    if (!had_dropped) dropped.first += begin;
    if (found.id < 0) return;
    ids.push_back(found.id);
    if (places) places->push_back(text.substr(found.begin, found.end - found.begin));
    begin = found.end;
  }
}

CachingTokenizer::CachingTokenizer(const Tokenizer& tokenizer) : state_(std::make_unique<State>(tokenizer)) {}
CachingTokenizer::~CachingTokenizer() = default;
CachingTokenizer::CachingTokenizer(CachingTokenizer&&) noexcept = default;

std::span<const std::int32_t> CachingTokenizer::encode(std::string_view text) {
  state_->encode(text, nullptr);
  return state_->ids;
}

std::vector<std::string_view> CachingTokenizer::places(std::string_view text) {
  std::vector<std::string_view> places;
  state_->encode(text, &places);
  return places;
}

const DroppedBytes& CachingTokenizer::dropped() const { return state_->dropped; }

Tokenizer::Tokenizer(Vocabulary vocabulary, const TokenizerOptions& options)
    : vocabulary_(std::move(vocabulary)),
      options_(options),
      whole_(whole_tokens(vocabulary_, options_)),
      pieces_(std::make_unique<const Pieces>(vocabulary_)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, DroppedBytes* dropped) const {
  CachingTokenizer caching(*this);
  const std::span<const std::int32_t> ids = caching.encode(text);
  if (dropped != nullptr) *dropped = caching.dropped();
  return {ids.begin(), ids.end()};
}

std::vector<std::string> Tokenizer::words(std::string_view text) const {
  WordSplitter splitter(options_.lower_case);
  Words words;
  splitter.split(text, words);
  std::vector<std::string> list;
  for (const Words::Word& word : words.list()) list.emplace_back(words.bytes(word));
  return list;
}

bool lower_cases(const Vocabulary& vocabulary, bool cased, const std::string& file) {
  if (!cased && vocabulary.has_capitals())
    io::warn("{}: words with capitals, which no text becomes, since it is lower-cased; hint: --cased", file);
  return !cased;
}

Tokenizer load_tokenizer(const std::filesystem::path& vocab_file, bool cased, const VocabularyOptions& of_vocabulary,
                         TokenizerOptions options) {
  const Vocabulary vocabulary = Vocabulary::load(vocab_file, of_vocabulary);
  options.lower_case = lower_cases(vocabulary, cased, vocab_file.string());
  return Tokenizer(vocabulary, options);
}

}  // namespace bertrand::text
