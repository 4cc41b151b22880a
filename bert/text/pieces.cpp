// A word cut into its longest pieces, from the left.
#include "bert/text/pieces.h"

#include <algorithm>
#include <bit>

namespace bertrand::text {

Pieces::Pieces(const Vocabulary& vocabulary) : ids_(3, -1), unk_id_(vocabulary.unk_id()) {
  std::vector<std::int32_t> sorted = vocabulary.distinct_ids();
  std::ranges::sort(sorted, {}, [&](std::int32_t id) { return vocabulary.token(id); });
  std::size_t edges = 1;  // a token adds an edge for each byte that it does not share with the one before
  std::string_view previous;
  for (const std::int32_t id : sorted) {
    const std::string_view token = vocabulary.token(id);
    const auto shared = std::ranges::mismatch(token, previous).in1 - token.begin();
    edges += token.size() - static_cast<std::size_t>(shared);
    previous = token;
  }
  if (edges >= kMaxNodes)
    fail(Failure::input, "vocabulary: expected less than {} distinct beginnings, got {}", kMaxNodes, edges);
  // Twice as many: one slot at least is empty, at which each search ends.
  const std::size_t slots = std::bit_ceil(2 * edges);
  edges_.resize(slots);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots));

  for (const std::int32_t id : sorted) {
    const std::string_view token = vocabulary.token(id);
    // No word begins with "##", since "#" is punctuation and stands alone.
    if (token.starts_with("##")) {
      insert(kContinue, token.substr(2), id);
    } else {
      insert(kBegin, token, id);
    }
  }
}

Pieces::Node Pieces::child(Node node, char byte) const {
  const std::uint32_t key = node << 8 | static_cast<unsigned char>(byte);
  for (std::size_t slot = slot_of(key);; slot = (slot + 1) & (edges_.size() - 1)) {
    if (edges_[slot].key == key) return edges_[slot].child;
    if (edges_[slot].key == 0) return 0;
  }
}

Pieces::Node Pieces::child_or_new(Node node, char byte) {
  if (const Node known = child(node, byte)) return known;
  const std::uint32_t key = node << 8 | static_cast<unsigned char>(byte);
  std::size_t slot = slot_of(key);
  while (edges_[slot].key != 0) slot = (slot + 1) & (edges_.size() - 1);
  edges_[slot] = {key, static_cast<Node>(ids_.size())};
  ids_.push_back(-1);
  return edges_[slot].child;
}

void Pieces::insert(Node root, std::string_view piece, std::int32_t id) {
  Node node = root;
  for (const char byte : piece) node = child_or_new(node, byte);
  ids_[node] = id;
}

void Pieces::cut(std::string_view word, std::vector<std::int32_t>& ids) const {
  const std::size_t ids_before = ids.size();
  for (Node root = kBegin; !word.empty(); root = kContinue) {
    std::int32_t longest_id = -1;
    std::size_t longest = 0;
    Node node = root;
    for (std::size_t i = 0; i < word.size() && (node = child(node, word[i])) != 0; ++i)
      if (ids_[node] >= 0) longest_id = ids_[node], longest = i + 1;
    if (longest_id < 0) {
      ids.resize(ids_before);
      ids.push_back(unk_id_);
      return;
    }
    ids.push_back(longest_id);
    word.remove_prefix(longest);
  }
}

}  // namespace bertrand::text
