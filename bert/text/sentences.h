// Paragraphs to sentences: the rules of Unicode (UAX #29) as ICU has them, and the abbreviations after which none ends.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace bertrand::text {

/// Cuts text into sentences. Holds buffers: one for each thread. The library does not bring ICU along: a program of
/// another project that uses this class links icuuc too.
class SentenceSplitter {
 public:
  /// `language` is a code such as en, de or zh_Hant. Throws Error(Failure::usage) if ICU does not know it, and in a
  /// build without ICU.
  explicit SentenceSplitter(const std::string& language);
  ~SentenceSplitter();
  SentenceSplitter(const SentenceSplitter&) = delete;
  SentenceSplitter& operator=(const SentenceSplitter&) = delete;

  /// Appends the sentences of `paragraph`, which is valid UTF-8 of less than 2 GiB, to `lines`: each with \n after it,
  /// without white space at its ends, inner white space as one blank. One without a character that the tokenizer keeps
  /// is left out. Returns how many there are.
  std::size_t append_lines(std::string_view paragraph, std::string& lines);

 private:
  struct Rules;
  std::unique_ptr<Rules> rules_;
};

}  // namespace bertrand::text
