// Learns a WordPiece vocabulary from the words of a text.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bert/text/word_counts.h"

namespace bertrand::text {

struct VocabularyTrainerOptions {
  std::size_t size = 30522;           ///< tokens wanted, special ones included; fewer if the text has no more pairs
  std::uint64_t min_frequency = 2;    ///< of a pair of pieces to become a piece
  std::size_t limit_alphabet = 1000;  ///< the most frequent characters that become pieces; other words are left out
  std::function<void(std::size_t tokens)> progress = nullptr;  ///< called after every merge
};

/// Characters of the text beyond limit_alphabet.
struct LeftOutCharacters {
  std::size_t count = 0;
  double share = 0;  ///< of the occurrences of all characters
};

/// The tokens, in this order: [PAD] [UNK] [CLS] [SEP] [MASK]; the alphabet by code point; the alphabet inside words
/// ("##a") likewise; then merges, one by one. A merge joins the two neighbouring pieces that are most frequent in the
/// text, of equally frequent ones the pair with the smallest numbers: byte-pair encoding (Sennrich et al. 2016) with
/// WordPiece's pieces, which is what Hugging Face's WordPiece trainer does too. The likelihood criterion of the
/// original (Schuster and Nakajima 2012) favours rare pairs of rare pieces and needs a threshold to be useful;
/// frequency does not. Deterministic. Throws Error(Failure::usage) if the alphabet alone needs more than `size` tokens
/// and Error(Failure::input) if there is no word.
std::vector<std::string> train_vocabulary(const WordCounts& counts, const VocabularyTrainerOptions& options,
                                          LeftOutCharacters* left_out = nullptr);

}  // namespace bertrand::text
