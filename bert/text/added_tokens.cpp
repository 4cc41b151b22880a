// Added tokens found byte by byte: there are few of them.
#include "bert/text/added_tokens.h"

#include <algorithm>
#include <functional>
#include <set>

namespace bertrand::text {
namespace {

char lower(char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }
char upper(char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c; }

/// Every letter beyond ASCII counts as one of a word.
bool is_of_word(char c) {
  return c == '_' || ('0' <= c && c <= '9') || ('a' <= lower(c) && lower(c) <= 'z') ||
         static_cast<unsigned char>(c) > 127;
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
  const bool touches = (at > 0 && is_of_word(text[at - 1])) || (end < text.size() && is_of_word(text[end]));
  return !token.single_word || !touches;
}

AddedTokenFinder::Found AddedTokenFinder::next(std::string_view text, std::size_t from) const {
  for (std::size_t at = from; at < text.size(); ++at)
    for (const AddedToken& token : by_first_byte_[static_cast<unsigned char>(text[at])])
      if (stands_at(at, text, token)) return {at, at + token.text.size(), token.id};
  return {text.size(), text.size(), -1};
}

}  // namespace bertrand::text
