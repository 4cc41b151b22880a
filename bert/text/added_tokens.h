// Tokens that stand in a text literally and are not cut into pieces.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::text {

/// A token beside those that WordPiece makes, with the flags of the package tokenizers. What lstrip and rstrip take
/// away is white space, which BERT never reads: they are only kept.
struct AddedToken {
  std::string text;
  std::int32_t id = -1;      ///< its row of the word embeddings
  bool special = false;      ///< a mark, no word
  bool normalized = false;   ///< in a text that is lower-cased its case does not count
  bool single_word = false;  ///< only where no letter, digit or _ stands beside it; `normalized`: but an ideograph may
  bool lstrip = false, rstrip = false;
  bool operator==(const AddedToken&) const = default;
};

/// Finds added tokens in texts. Immutable.
class AddedTokenFinder {
 public:
  /// `lower_case`: texts are lower-cased. The case of ASCII alone is compared.
  AddedTokenFinder(std::vector<AddedToken> tokens, bool lower_case);

  struct Found {
    std::size_t begin, end;  ///< in the text
    std::int32_t id;
  };
  /// The first token at or behind `from`, of several there the longest, of several such the one with the least id;
  /// {text.size(), text.size(), -1} if there is none.
  Found next(std::string_view text, std::size_t from) const;

  bool empty() const { return empty_; }

 private:
  const AddedToken* longest(const std::vector<AddedToken>& tokens, std::string_view text, std::size_t at) const;

  // Sorted by text, whose beginnings are so found together. Of the same text there is the first, and if that is a
  // single word the first that is none.
  std::vector<AddedToken> exact_, folded_;  // folded: in lower case, as their case does not count
  std::array<bool, 256> begins_token_ = {};
  bool empty_;
};

}  // namespace bertrand::text
