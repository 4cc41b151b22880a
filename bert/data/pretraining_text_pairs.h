// Cuts documents into pairs of segments (A, B), half of them with a B from elsewhere, as google-research/bert
// create_pretraining_data.py does; drawn anew in every epoch.
#pragma once
#include <cstdint>
#include <vector>

namespace bertrand::data {

/// Where sentences and documents begin in one long row of tokens. No sentence and no document is empty.
struct Documents {
  std::vector<std::uint64_t> sentences;  ///< [sentences + 1] first tokens
  std::vector<std::uint64_t> documents;  ///< [documents + 1] first sentences

  std::size_t count() const { return documents.empty() ? 0 : documents.size() - 1; }
};

/// Two runs of tokens, not yet cut to the length of an example.
struct SegmentPair {
  std::uint64_t a_begin = 0, b_begin = 0;
  std::uint32_t a_count = 0, b_count = 0;
  bool random_next = false;
};

struct PairOptions {
  std::int64_t max_seq_length = 128;  ///< at least 5: [CLS] a [SEP] b [SEP]
  double short_seq_prob = 0.1;        ///< of a document to be cut into shorter pairs
};

/// The pairs of one document; `key` names seed, epoch and document. There are at least two documents.
/// Differs from Google's in one point: a random B is never from the same document, however few there are.
std::vector<SegmentPair> draw_pairs(const Documents& documents, std::size_t document, const PairOptions& options,
                                    std::uint64_t key);

}  // namespace bertrand::data
