// Added tokens found byte by byte, in sorted lists: there may be many that begin alike.
#include "bert/text/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>
#include <span>
#include <utility>

#include "bert/text/unicode.h"
#include "bert/text/utf8.h"
#include "io/ascii.h"

namespace bertrand::text {
namespace {

char upper(char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c; }

/// What \w of a regular expression means in Unicode (UTS 18, annex C).
bool is_of_word(utf8proc_int32_t c) {
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return c == 0x200C || c == 0x200D;  // joiners
  }
}

/// Whether `text` begins with a character of a word. Bytes that are not UTF-8 are none, nor is an ideograph beside a
/// token that is `normalized`: the normalizer, which comes before it, puts spaces around ideographs.
bool begins_with_word(std::string_view text, bool normalized) {
  utf8proc_int32_t c = 0;
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  if (utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), size, &c) <= 0) return false;
  return is_of_word(c) && !(normalized && (UnicodeTable::get().properties(static_cast<char32_t>(c)) & kIdeograph));
}

bool ends_with_word(std::string_view text, bool normalized) {
  return !text.empty() && begins_with_word(text.substr(place_before(text, text.size())), normalized);
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, bool lower_case) : empty_(tokens.empty()) {
  std::ranges::stable_sort(tokens, {}, &AddedToken::id);
  for (AddedToken& token : tokens) {
    const bool folds = token.normalized && lower_case;
    if (folds) token.text = io::ascii_lower(std::move(token.text));
    const char first = token.text.front();
    for (const char c : {first, folds ? upper(first) : first}) begins_token_[static_cast<unsigned char>(c)] = true;
    (folds ? folded_ : exact_).push_back(std::move(token));
  }
  for (std::vector<AddedToken>* list : {&exact_, &folded_}) {
    std::ranges::stable_sort(*list, {}, &AddedToken::text);
    std::vector<AddedToken> kept;
    for (AddedToken& token : *list)
      if (kept.empty() || kept.back().text != token.text || (kept.back().single_word && !token.single_word))
        kept.push_back(std::move(token));
    *list = std::move(kept);
  }
}

const AddedToken* AddedTokenFinder::longest(const std::vector<AddedToken>& tokens, std::string_view text,
                                            std::size_t at) const {
  const AddedToken* longest = nullptr;
  std::span<const AddedToken> left = tokens;  // which begin as the text does here
  for (std::size_t n = 0; at + n < text.size() && !left.empty(); ++n) {
    const char c = &tokens == &folded_ ? io::ascii_lower(text[at + n]) : text[at + n];
    const auto byte = [n](const AddedToken& token) {
      return n < token.text.size() ? int{static_cast<unsigned char>(token.text[n])} : -1;
    };
    const int next = static_cast<unsigned char>(c);
    left = {std::ranges::lower_bound(left, next, {}, byte), std::ranges::upper_bound(left, next, {}, byte)};
    const std::size_t end = at + n + 1;
    const auto stands = [&](const AddedToken& token) {
      return token.text.size() == n + 1 &&
             !(token.single_word && (ends_with_word(text.substr(0, at), token.normalized) ||
                                     begins_with_word(text.substr(end), token.normalized)));
    };
    const auto whole = left.first(std::min<std::size_t>(left.size(), 2));  // no more than two are the same text
    if (const auto found = std::ranges::find_if(whole, stands); found != whole.end()) longest = &*found;
  }
  return longest;
}

AddedTokenFinder::Found AddedTokenFinder::next(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!begins_token_[static_cast<unsigned char>(text[at])]) continue;  // for speed alone
    const AddedToken *exact = longest(exact_, text, at), *folded = longest(folded_, text, at);
    if (!exact && !folded) continue;
    const bool takes_exact = exact && (!folded || exact->text.size() > folded->text.size() ||
                                       (exact->text.size() == folded->text.size() && exact->id < folded->id));
    const AddedToken& token = takes_exact ? *exact : *folded;
    return {at, at + token.text.size(), token.id};
  }
  return {text.size(), text.size(), -1};
}

}  // namespace bertrand::text
