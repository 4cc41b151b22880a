// Sentences of words as a token model reads them: words cut into pieces, long sentences into windows that overlap.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bert/tasks/encode.h"
#include "bert/text/tokenizer.h"

namespace bertrand::tasks {

struct WindowOptions {
  int max_length = 128;             ///< tokens of a window, [CLS] and [SEP] included
  std::optional<int> overlap = {};  ///< pieces that neighbouring windows share; absent: a quarter of a window's
};

/// Sentences, one after the other. A piece may lie in several windows; it counts in one of them, where it has most
/// context: the more pieces on its shorter side, the more (Google's rule for SQuAD, run_squad.py).
struct EncodedSentences {
  EncodedDataset windows;                  ///< each is an example: [CLS] pieces [SEP]; none if no word has pieces
  std::vector<std::int64_t> piece_tokens;  ///< [pieces]: the token of `windows` where the piece counts
  std::vector<std::int64_t> first_pieces = {
      0};                ///< [words + 1]: word w has pieces first_pieces[w] … first_pieces[w + 1]
  std::int64_t cut = 0;  ///< sentences of more than one window

  std::size_t words() const { return first_pieces.size() - 1; }
  /// Words of which the tokenizer leaves nothing.
  std::size_t without_pieces() const;
  /// Keeps the windows alone. The next words begin at 0.
  void forget_words();
  /// Where the pieces of a word count. None if the tokenizer leaves nothing of the word.
  std::span<const std::int64_t> tokens(std::size_t word) const {
    const auto begin = static_cast<std::size_t>(first_pieces[word]);
    return std::span(piece_tokens).subspan(begin, static_cast<std::size_t>(first_pieces[word + 1]) - begin);
  }
  /// The token whose output is the word's: its first piece's.
  std::optional<std::size_t> token(std::size_t word) const {
    const std::span<const std::int64_t> all = tokens(word);
    if (all.empty()) return std::nullopt;
    return static_cast<std::size_t>(all.front());
  }
};

/// Has buffers: one for each thread. The tokenizer must outlive it.
class SentenceEncoder {
 public:
  /// Throws Failure::usage if a window has no room for a piece or the overlap leaves no step to the next one.
  SentenceEncoder(const text::Tokenizer& tokenizer, const WindowOptions& options);

  /// Appends a sentence, in time linear in its length. A word is any text.
  void append(std::span<const std::string> words, EncodedSentences& to);

 private:
  void append_windows(EncodedSentences& to);

  text::CachingTokenizer caching_;
  const SpecialTokens special_;
  const std::int64_t room_, step_;    // pieces of a window, and from one window to the next
  std::vector<std::int32_t> pieces_;  // of the sentence
};

}  // namespace bertrand::tasks
