// What the tokenizer asks of a code point, by the Unicode 14.0 tables of CPython 3.11.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace bertrand::text {

/// Facts about a code point, as bits.
enum CodePointProperty : std::uint8_t {
  kDropped = 1 << 0,        ///< U+0000, U+FFFD, categories Cc and Cf but for \t \n \r: removed from the text
  kSpace = 1 << 1,          ///< separates words: space, \t \n \r, categories Zs, Zl, Zp
  kIdeograph = 1 << 2,      ///< Google's CJK blocks: a word by itself
  kPunctuation = 1 << 3,    ///< ASCII symbols and categories P*: a word by itself
  kMark = 1 << 4,           ///< category Mn: what accent stripping removes
  kRewritten = 1 << 5,      ///< lower-casing, NFD or its reordering may change it
  kCased = 1 << 6,          ///< has the derived property Cased and not Case_Ignorable
  kCaseIgnorable = 1 << 7,  ///< has the derived property Case_Ignorable
};

/// The tables, made from utf8proc's once, on first use (thread-safe). utf8proc 2.8 of Debian 12 has Unicode 15.0; over
/// all code points it differs from CPython 3.11 in the 4,489 that 15.0 added and in the lower case of U+0130. Both are
/// handled here: a code point that 14.0 does not assign has no property, whatever version the library has.
class UnicodeTable {
 public:
  static const UnicodeTable& get();

  /// The properties of a code point below 0x110000.
  std::uint8_t properties(char32_t c) const { return properties_[c]; }
  /// Whether Unicode 14.0 assigns it.
  static bool is_assigned(char32_t c);

  /// str.lower() of a whole text in place, with Python's rule for the final sigma.
  void lower(std::u32string& text) const;
  /// The canonical decomposition (NFD) of `text` into `out`, without the marks (category Mn).
  void decompose_without_marks(const std::u32string& text, std::u32string& out) const;

 private:
  UnicodeTable();
  std::unique_ptr<std::uint8_t[]> properties_;
};

}  // namespace bertrand::text
