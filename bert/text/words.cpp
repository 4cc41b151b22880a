// Text cut at white space and punctuation.
#include "bert/text/words.h"

#include <array>

#include "bert/text/unicode.h"
#include "io/ascii.h"

namespace bertrand::text {
namespace {

enum class AsciiClass : std::uint8_t { letter, punctuation, space, control };

// ASCII needs no tables of Unicode: what each byte is, and its lower case. Bytes above 127 count as letters.
constexpr auto kAsciiClass = [] {
  std::array<AsciiClass, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    const bool is_space = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    const bool is_symbol =
        (33 <= c && c <= 47) || (58 <= c && c <= 64) || (91 <= c && c <= 96) || (123 <= c && c <= 126);
    classes[static_cast<std::size_t>(c)] = is_space             ? AsciiClass::space
                                           : c < 32 || c == 127 ? AsciiClass::control
                                           : is_symbol          ? AsciiClass::punctuation
                                                                : AsciiClass::letter;
  }
  return classes;
}();

AsciiClass ascii_class(char c) { return kAsciiClass[static_cast<unsigned char>(c)]; }

}  // namespace

DroppedBytes WordSplitter::split(std::string_view text, Words& words) {
  DroppedBytes dropped;
  const bool all_ascii = is_ascii(text);
  if (!all_ascii) {
    dropped = drop_invalid_utf8(text, valid_);
    if (dropped.count > 0) text = valid_;
  }
  // ASCII white space always separates, so the text between two such characters can be treated alone; if all of it is
  // ASCII, every byte can be treated alone.
  const char* p = text.data();
  const char* const end = p + text.size();
  if (all_ascii) {
    split_ascii_chunk(p, end, words);
    return dropped;
  }
  while (p < end) {
    while (p < end && ascii_class(*p) == AsciiClass::space) ++p;
    const char* const begin = p;
    unsigned char seen = 0;
    for (; p < end && ascii_class(*p) != AsciiClass::space; ++p) seen |= static_cast<unsigned char>(*p);
    if ((seen & 0x80) == 0) {
      split_ascii_chunk(begin, p, words);
    } else {
      split_chunk(begin, p, words);
    }
  }
  return dropped;
}

void WordSplitter::split_ascii_chunk(const char* begin, const char* end, Words& words) {
  char* out = words.reserve(static_cast<std::size_t>(end - begin));
  char* word = out;
  const auto close = [&] {
    const auto size = static_cast<std::size_t>(out - word);
    if (size > 0) words.add(size, size);
    word = out;
  };
  for (const char* p = begin; p < end; ++p) {
    switch (ascii_class(*p)) {
      case AsciiClass::letter: *out++ = lower_case_ ? io::ascii_lower(*p) : *p; break;
      case AsciiClass::punctuation:
        close();
        *out++ = *p;
        close();
        break;
      case AsciiClass::space: close(); break;
      case AsciiClass::control: break;
    }
  }
  close();
}

void WordSplitter::split_chunk(const char* begin, const char* end, Words& words) {
  const UnicodeTable& table = UnicodeTable::get();
  token_.clear();
  for (const char* p = begin; p < end;) {
    const char32_t c = decode_utf8(p);
    const std::uint8_t properties = table.properties(c);
    if (properties & kDropped) continue;
    const bool stands_alone = properties & kIdeograph;
    if (stands_alone || (properties & kSpace)) normalise(words);
    if (properties & kSpace) continue;
    token_.push_back(c);
    if (stands_alone) normalise(words);
  }
  normalise(words);
}

// Ends a token: lower-cases it and strips its accents if so asked, and cuts it at punctuation.
void WordSplitter::normalise(Words& words) {
  if (token_.empty()) return;  // for speed alone
  const UnicodeTable& table = UnicodeTable::get();
  std::uint8_t properties = 0;
  if (lower_case_) {
    for (const char32_t c : token_) properties |= table.properties(c);
  }
  if (properties & (kRewritten | kMark)) {
    table.lower(token_);
    table.decompose_without_marks(token_, normalised_);
    split_on_punctuation(normalised_, words);
  } else {
    split_on_punctuation(token_, words);
  }
  token_.clear();
}

void WordSplitter::split_on_punctuation(const std::u32string& text, Words& words) {
  const UnicodeTable& table = UnicodeTable::get();
  char* const begin = words.reserve(4 * text.size());
  char* out = begin;
  char* word = begin;
  std::size_t characters = 0;
  const auto close = [&] {
    if (characters > 0) words.add(static_cast<std::size_t>(out - word), characters);
    word = out;
    characters = 0;
  };
  for (const char32_t c : text) {
    const bool is_punctuation = table.properties(c) & kPunctuation;
    if (is_punctuation) close();
    out = encode_utf8(c, out);
    ++characters;
    if (is_punctuation) close();
  }
  close();
}

std::vector<std::string_view> character_places(std::string_view text, bool lower_case) {
  const UnicodeTable& table = UnicodeTable::get();
  std::vector<std::string_view> places;
  bool in_word = false;
  std::u32string lower, characters;
  for (const char *p = text.data(), *const end = p + text.size(); p < end;) {
    const char* const begin = p;
    const char32_t c = decode_utf8(p);
    const std::uint8_t properties = table.properties(c);
    if (properties & kDropped) continue;
    if (properties & kSpace) {
      in_word = false;
      continue;
    }
    std::size_t count = 1;
    if (lower_case && (properties & (kRewritten | kMark))) {
      // Both treat code points alone, but for the shape of a sigma and the order of marks.
      table.lower(lower.assign(1, c));
      table.decompose_without_marks(lower, characters);
      count = characters.size();
    }
    if (count == 0 && in_word) places.back() = {places.back().data(), p};
    places.insert(places.end(), count, std::string_view(begin, p));
    in_word |= count > 0;
  }
  return places;
}

}  // namespace bertrand::text
