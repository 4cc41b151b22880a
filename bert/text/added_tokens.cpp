// Added tokens found byte by byte: there are few of them.
#include "bert/text/added_tokens.h"

#include <utf8proc.h>

#include <algorithm>
#include <functional>
#include <set>

namespace bertrand::text {
namespace {

char lower(char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
char upper(char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c; }

/// What \\w of a regular expression means in Unicode (UTS 18, annex C).
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

/// Whether `text` begins with a character of a word. Bytes that are not UTF-8 are none.
bool begins_with_word(std::string_view text) {
  utf8proc_int32_t c = 0;
  const auto size = static_cast<utf8proc_ssize_t>(text.size());
  return utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), size, &c) > 0 && is_of_word(c);
}

bool ends_with_word(std::string_view text) {
  std::size_t begin = text.size();
  const auto is_continuation = [&] { return (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80; };
  while (begin > 0)
    if (--begin; !is_continuation()) break;
  return begins_with_word(text.substr(begin));
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens, bool lower_case)
    : lower_case_(lower_case), empty_(tokens.empty()) {
  std::ranges::stable_sort(tokens, std::greater{}, [](const AddedToken& token) { return token.text.size(); });
  for (const AddedToken& token : tokens) {
    const char first = token.text.front();
    const std::set<char> firsts =
        token.normalized && lower_case ? std::set{lower(first), upper(first)} : std::set{first};
    for (const char c : firsts) by_first_byte_[static_cast<unsigned char>(c)].push_back(token);
  }
}

bool AddedTokenFinder::stands_at(std::size_t at, std::string_view text, const AddedToken& token) const {
  const std::size_t end = at + token.text.size();
  const auto folded = [&](char c) { return lower_case_ && token.normalized ? lower(c) : c; };
  if (!std::ranges::equal(text.substr(at, token.text.size()), token.text, {}, folded, folded)) return false;
  return !token.single_word || !(ends_with_word(text.substr(0, at)) || begins_with_word(text.substr(end)));
}

AddedTokenFinder::Found AddedTokenFinder::next(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at)
    for (const AddedToken& token : by_first_byte_[static_cast<unsigned char>(text[at])])
      if (stands_at(at, text, token)) return {at, at + token.text.size(), token.id};
  return {text.size(), text.size(), -1};
}

}  // namespace bertrand::text
