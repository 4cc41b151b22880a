// ICU finds where sentences may end; what stands before such a place may say that the sentence goes on.
#include "bert/text/sentences.h"

#include "io/error.h"

#ifdef BERTRAND_ICU
#include <unicode/ubrk.h>
#include <unicode/uchar.h>
#include <unicode/uloc.h>
#include <unicode/ures.h>
#include <unicode/utext.h>

#include <algorithm>
#include <array>
#include <set>

#include "bert/text/python_text.h"
#include "bert/text/unicode.h"
#include "bert/text/utf8.h"
#include "bert/text/vocabulary.h"
#include "io/split.h"
#endif

namespace bertrand::text {

#ifdef BERTRAND_ICU

namespace {

using namespace std::string_view_literals;
using Words = std::set<std::string, std::less<>>;

/// English titles and abbreviations after which a sentence goes on. CLDR has Mr., Prof., Lt., vs. and more, not these.
constexpr std::string_view kEnglish =
    "Dr. Drs. Messrs. Mme. Mlle. Revd. Fr. St. Ste. Hon. Gov. Sen. Pres. Supt. Gen. Brig. Adm. Cmdr. Cdr. Cpt. Cpl. "
    "Ft. Bros. v. cf. viz. i.e. e.g. c. ca. approx. Vol. Vols. Apr. Jul. Oct.";
/// Those after which it goes on if a digit follows. "No." may also be an answer.
constexpr std::string_view kEnglishBeforeDigits =
    "No. Nos. no. nos. vol. vols. p. Fig. Figs. fig. figs. Eq. Ch. Chap. Sec. Art.";
constexpr std::array kClosing = {"\""sv, "'"sv, ")"sv, "]"sv, "”"sv, "’"sv, "»"sv};
constexpr int kLongestWord = 32;  // characters; no abbreviation has as many

void check_icu(UErrorCode code, const char* what) {
  if (U_FAILURE(code)) fail(Failure::io, "ICU: {}: {}; hint: is its data installed?", what, u_errorName(code));
}

/// The name of `language` in ICU. Only what it lists is known: for any other name it takes the default of the system.
std::string known_language(const std::string& language) {
  std::array<char, ULOC_FULLNAME_CAPACITY> name{};
  UErrorCode code = U_ZERO_ERROR;
  uloc_getName(language.c_str(), name.data(), name.size() - 1, &code);
  for (int i = 0; U_SUCCESS(code) && i < uloc_countAvailable(); ++i)
    if (name.data() == std::string_view(uloc_getAvailable(i))) return name.data();
  fail(Failure::usage, "--language: expected a code that ICU has, such as en, de, fr or zh, got {}", language);
}

/// The abbreviations that CLDR gives for a language: those of ICU's FilteredBreakIteratorBuilder. That class looks for
/// them at the end of a word too: after "er." no German sentence would end, because "r." is one of them.
Words abbreviations_of_cldr(const std::string& language) {
  UErrorCode code = U_ZERO_ERROR;
  const icu::LocalUResourceBundlePointer all(ures_openDirect(U_ICUDATA_NAME "-brkitr", language.c_str(), &code));
  const icu::LocalUResourceBundlePointer exceptions(ures_getByKey(all.getAlias(), "exceptions", nullptr, &code));
  const icu::LocalUResourceBundlePointer list(ures_getByKey(exceptions.getAlias(), "SentenceBreak", nullptr, &code));
  Words words;
  while (ures_hasNext(list.getAlias())) {  // false also if there is none
    const icu::LocalUResourceBundlePointer word(ures_getNextResource(list.getAlias(), nullptr, &code));
    std::string bytes(256, '\0');
    auto size = static_cast<std::int32_t>(bytes.size());
    ures_getUTF8String(word.getAlias(), bytes.data(), &size, /*forceCopy=*/true, &code);
    if (U_FAILURE(code)) break;
    bytes.resize(static_cast<std::size_t>(size));
    for (std::size_t blank = 0; (blank = bytes.find(' ', blank + 1)) != std::string::npos;)
      words.insert(bytes.substr(0, blank));  // no end after "n." of "n. Chr."
    words.insert(std::move(bytes));
  }
  return words;  // most languages have none
}

/// Adds what stands between blanks.
void add_words(std::string_view list, Words& words) {
  for (const std::string_view word : io::split(list, ' ')) words.emplace(word);
}

char32_t first_of(std::string_view text) {
  const char* p = text.data();
  return text.empty() ? 0 : decode_utf8(p);
}
std::string_view without_space_at_end(std::string_view text) {
  for (std::size_t end = text.size(); end > 0; text = text.substr(0, end))
    if (end = place_before(text, end); !is_python_space(first_of(text.substr(end)))) break;
  return text;
}
/// Where the word begins that ends at `end`: letters, digits, full stops and hyphens.
std::size_t word_begin(std::string_view text, std::size_t end) {
  for (int characters = 0; end > 0 && characters <= kLongestWord; ++characters) {
    const std::size_t place = place_before(text, end);
    const char32_t c = first_of(text.substr(place));
    if (!u_isalnum(static_cast<UChar32>(c)) && c != '.' && c != '-') break;
    end = place;
  }
  return end;
}

/// The place before the marks that open something, which Unicode gives to the sentence before if no blank is between.
std::size_t without_opening(std::string_view text, std::size_t end) {
  for (std::size_t place = end; place > 0; end = place) {
    place = place_before(text, end);
    const int kind = u_charType(static_cast<UChar32>(first_of(text.substr(place))));
    if (kind != U_START_PUNCTUATION && kind != U_INITIAL_PUNCTUATION) break;
  }
  return end;
}

/// Appends `sentence` as a line if it says anything; returns whether it does.
bool append_line(std::string_view sentence, std::string& lines) {
  const UnicodeTable& table = UnicodeTable::get();
  const std::size_t size = lines.size();
  bool says_something = false, after_space = false;
  for (const char* p = sentence.data(); p < sentence.data() + sentence.size();) {
    const char* const begin = p;
    const char32_t c = decode_utf8(p);
    const std::uint8_t properties = table.properties(c);
    if ((properties & kSpace) != 0 || is_python_space(c)) {
      after_space = true;
      continue;
    }
    if (after_space && lines.size() > size) lines.push_back(' ');
    after_space = false;
    lines.append(begin, p);
    says_something |= (properties & (kDropped | kMark)) == 0;
  }
  if (says_something) lines.push_back('\n');
  else lines.resize(size);
  return says_something;
}

}  // namespace

struct SentenceSplitter::Rules {
  explicit Rules(const std::string& language) {
    const std::string name = known_language(language);
    UErrorCode code = U_ZERO_ERROR;
    breaks.adoptInstead(ubrk_open(UBRK_SENTENCE, name.c_str(), nullptr, 0, &code));
    check_icu(code, "sentences");
    const std::string plain = name.substr(0, name.find('_'));
    abbreviations = abbreviations_of_cldr(plain);
    if (plain == "en") add_words(kEnglish, abbreviations), add_words(kEnglishBeforeDigits, before_digits);
  }
  ~Rules() { utext_close(&text); }
  Rules(const Rules&) = delete;
  Rules& operator=(const Rules&) = delete;

  /// Whether the sentence goes on where ICU would end it: `done` is what stands before this place, `next` what follows.
  bool goes_on(std::string_view done, std::string_view next) const {
    done = without_space_at_end(done);
    const auto follows = static_cast<UChar32>(first_of(next));
    if (!done.ends_with('.'))  // "What?" she said
      return u_islower(follows) && std::ranges::any_of(kClosing, [&](auto mark) { return done.ends_with(mark); });
    const std::size_t begin = word_begin(done, done.size());
    if (is_initial(done.substr(begin)) || abbreviations.contains(done.substr(begin))) return true;
    if (u_isdigit(follows) && before_digits.contains(done.substr(begin))) return true;
    // Two words, as "d. h."; each abbreviation of more, as "v. u. Z.", ends with a shorter one.
    return begin > 0 && done[begin - 1] == ' ' && abbreviations.contains(done.substr(word_begin(done, begin - 1)));
  }

  /// John A. Ryan, J.-P. Sartre: one capital and a full stop, alone or after a hyphen.
  static bool is_initial(std::string_view word) {
    if (word.size() < 2) return false;
    const std::size_t letter = place_before(word, word.size() - 1);
    return (letter == 0 || word[letter - 1] == '-') && u_isupper(static_cast<UChar32>(first_of(word.substr(letter))));
  }

  icu::LocalUBreakIteratorPointer breaks;
  UText text = UTEXT_INITIALIZER;
  Words abbreviations, before_digits;
};

SentenceSplitter::SentenceSplitter(const std::string& language) : rules_(std::make_unique<Rules>(language)) {}

std::size_t SentenceSplitter::append_lines(std::string_view paragraph, std::string& lines) {
  paragraph = strip(paragraph);
  UBreakIterator* const breaks = rules_->breaks.getAlias();
  UErrorCode code = U_ZERO_ERROR;
  utext_openUTF8(&rules_->text, paragraph.data(), static_cast<std::int64_t>(paragraph.size()), &code);
  ubrk_setUText(breaks, &rules_->text, &code);
  check_icu(code, "text");
  std::size_t count = 0, begin = 0;
  for (std::int32_t place = ubrk_next(breaks); place != UBRK_DONE; place = ubrk_next(breaks)) {
    auto end = static_cast<std::size_t>(place);
    if (end < paragraph.size()) {
      end = begin + without_opening(paragraph.substr(begin, end - begin), end - begin);
      if (rules_->goes_on(paragraph.substr(begin, end - begin), paragraph.substr(end))) continue;
    }
    count += append_line(paragraph.substr(begin, end - begin), lines) ? 1 : 0;
    begin = end;
  }
  return count;
}

#else

struct SentenceSplitter::Rules {};

SentenceSplitter::SentenceSplitter(const std::string&) {
  fail(Failure::usage, "sentences: expected a build with ICU, got one without; hint: build with libicu-dev installed");
}

std::size_t SentenceSplitter::append_lines(std::string_view, std::string&) { return 0; }

#endif

SentenceSplitter::~SentenceSplitter() = default;

}  // namespace bertrand::text
