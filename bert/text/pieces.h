// WordPiece: a word cut into the longest pieces of a vocabulary, from left to right.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "bert/text/vocabulary.h"

namespace bertrand::text {

/// The tokens of a vocabulary as two tries over bytes: one of the pieces that begin a word, one of those that continue
/// it ("##" in the vocabulary, left out here). A step is one look-up in a flat hash table of (node, byte).
class Pieces {
 public:
  explicit Pieces(const Vocabulary& vocabulary);

  /// Appends the ids of the pieces of a word (UTF-8, not empty), or the one id of [UNK] if it cannot be cut into
  /// pieces. Greedy longest-match-first, as Google's WordpieceTokenizer.
  void cut(std::string_view word, std::vector<std::int32_t>& ids) const;

 private:
  using Node = std::uint32_t;
  static constexpr Node kBegin = 1;     // root of the pieces that begin a word
  static constexpr Node kContinue = 2;  // root of the others

  static constexpr std::size_t kMaxNodes = 1 << 24;  // a node and a byte fit in 32 bits

  struct Edge {
    std::uint32_t key = 0;  // (node << 8 | byte); 0 is an empty slot, as no node is numbered 0
    Node child = 0;
  };

  std::size_t slot_of(std::uint32_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }
  Node child(Node node, char byte) const;
  Node child_or_new(Node node, char byte);
  void insert(Node root, std::string_view piece, std::int32_t id);

  std::vector<Edge> edges_;        // open addressing, a power of two, at most half full
  unsigned shift_;                 // 64 - log2(edges_.size())
  std::vector<std::int32_t> ids_;  // by node: the piece that ends here, or -1
  std::int32_t unk_id_;
};

}  // namespace bertrand::text
