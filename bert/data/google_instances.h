// The pre-training instances of google-research/bert create_pretraining_data.py, one for one: the same random numbers
// are drawn in the same order. An instance is kept as places in the corpus, so that many cost little memory.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bert/data/pretraining_text_corpus.h"
#include "bert/data/python_random.h"
#include "bert/text/vocabulary.h"

namespace bertrand::data {

struct GoogleOptions {
  std::int64_t max_seq_length = 128;  ///< 5 to 65,536: [CLS] a [SEP] b [SEP]
  std::int64_t max_predictions = 20;  ///< per instance, at least 0
  double masked_lm_prob = 0.15;       ///< of a token to be predicted, 0 to 1
  double short_seq_prob = 0.1;        ///< of a document to be cut into shorter instances, 0 to 1
  std::int64_t dupe_factor = 10;      ///< how often every document is used
  std::int64_t seed = 12345;
  bool whole_words = false;  ///< mask all pieces of a word or none
};

/// A masked position and what the model sees there; what stood there is in the corpus.
struct MaskedToken {
  std::uint32_t position;
  std::int32_t replacement;
};

/// [CLS] A [SEP] B [SEP], where A and B are runs of tokens of the corpus.
struct Instance {
  std::uint64_t a_begin = 0, b_begin = 0;
  std::uint32_t a_count = 0, b_count = 0;
  bool is_random_next = false;
  std::vector<MaskedToken> masked;  ///< by ascending position
};

/// Draws the instances of a corpus. Google's script keeps every token string in memory; this keeps the corpus.
class GoogleInstances {
 public:
  /// Corpus and vocabulary must outlive this. Throws Error(Failure::usage) for options outside their range and
  /// Error(Failure::input) for a vocabulary without [CLS], [SEP] or [MASK].
  GoogleInstances(const Corpus& corpus, const text::Vocabulary& vocabulary, const GoogleOptions& options);

  /// Draws all instances, in the script's order of creation, and gives each to `take`, together with the number of
  /// documents done so far (of dupe_factor times the number of documents). To be called once.
  void draw(const std::function<void(const Instance& instance, std::uint64_t documents_done)>& take);

  /// After draw(): the numbers of the instances in the order in which the script writes them.
  std::vector<std::uint32_t> order();

  /// How many were drawn.
  std::uint64_t count() const { return count_; }

 private:
  struct Run {
    std::uint64_t begin;
    std::uint64_t count;
  };

  std::uint64_t sentences(std::uint64_t document) const;
  Run run(std::uint64_t document, std::uint64_t first_sentence, std::uint64_t last_sentence) const;
  Run draw_random_next(std::uint64_t document_number, std::uint64_t target);
  void draw_document(std::uint64_t document_number, const std::function<void(const Instance&)>& take);
  void truncate(Run& a, Run& b, std::uint64_t most);
  void mask();
  void list_groups();

  const Corpus& corpus_;
  GoogleOptions options_;
  std::int32_t mask_id_;
  std::vector<std::int32_t> words_;   // Python's list(vocab.keys()), as ids
  std::vector<bool> continues_word_;  // by id: whether the piece begins with ##
  PythonRandom random_;
  std::vector<std::uint64_t> documents_;  // in shuffled order
  std::uint64_t count_ = 0;

  // What draw() is working on.
  struct Group {
    std::uint32_t begin, count;  // in positions_
  };
  Instance instance_;
  std::vector<std::uint32_t> positions_;  // all but [CLS] and [SEP]
  std::vector<Group> groups_;             // what is masked together
};

/// The ids of an instance before masking, with [CLS] and [SEP], into `ids`.
void instance_tokens(const Instance& instance, const Corpus& corpus, const text::Vocabulary& vocabulary,
                     std::vector<std::int32_t>& ids);

}  // namespace bertrand::data
