// Examples drawn from a corpus for each epoch.
#include "bert/data/pretraining_text.h"

#include <algorithm>

#include "tensor/random.h"

namespace bertrand::data {

namespace {

/// A segment while it is cut: tokens [begin, end) of the corpus.
struct Segment {
  std::uint64_t begin, end;
  std::uint64_t count() const { return end - begin; }
};

/// Google's truncate_seq_pair: drops tokens of the longer segment, at random from its front or its back.
void truncate(Segment& a, Segment& b, std::uint64_t longest, Random& random) {
  while (a.count() + b.count() > longest) {
    Segment& longer = a.count() > b.count() ? a : b;
    if (random.uniform() < 0.5) ++longer.begin;
    else --longer.end;
  }
}

MaskingVocabulary masking_vocabulary(const text::Vocabulary& words) {
  MaskingVocabulary vocabulary{.cls = words.cls_id(),
                               .sep = words.sep_id(),
                               .mask = words.mask_id(),
                               .size = words.size(),
                               .continues_word = {}};
  vocabulary.continues_word.reserve(static_cast<std::size_t>(words.size()));
  for (std::int32_t id = 0; id < words.size(); ++id)
    vocabulary.continues_word.push_back(words.token(id).starts_with("##"));
  return vocabulary;
}

}  // namespace

PretrainingText::PretrainingText(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                                 const PretrainingTextOptions& options)
    : options_(options),
      vocabulary_(masking_vocabulary(tokenizer.vocabulary())),
      corpus_(read_corpus(files, tokenizer, {.threads = options.threads, .progress = options.progress})) {}

std::shared_ptr<const PretrainingText::Pairs> PretrainingText::pairs(std::int64_t epoch) {
  const std::lock_guard lock(mutex_);
  Epoch& drawn = drawn_[static_cast<std::size_t>(epoch % 2)];
  if (drawn.number == epoch) return drawn.pairs;
  const std::uint64_t key = mix(mix(options_.seed, hash_name("sentence pairs")), static_cast<std::uint64_t>(epoch));
  Pairs pairs;
  for (std::size_t document = 0; document < corpus_.documents.count(); ++document) {
    const auto of_document = draw_pairs(corpus_.documents, document, options_.pairs, mix(key, document));
    pairs.insert(pairs.end(), of_document.begin(), of_document.end());
  }
  drawn = {epoch, std::make_shared<const Pairs>(std::move(pairs))};
  return drawn.pairs;
}

std::int64_t PretrainingText::examples(std::int64_t epoch) { return static_cast<std::int64_t>(pairs(epoch)->size()); }

std::int64_t PretrainingText::tokens(std::int64_t epoch, std::int64_t number) {
  const SegmentPair pair = pairs(epoch)->at(static_cast<std::size_t>(number));
  return std::min(std::int64_t{pair.a_count} + pair.b_count + 3, options_.pairs.max_seq_length);
}

PretrainingExample PretrainingText::example(std::int64_t epoch, std::int64_t number) {
  const SegmentPair pair = pairs(epoch)->at(static_cast<std::size_t>(number));
  const std::uint64_t key = mix(mix(options_.seed, hash_name("masking")), static_cast<std::uint64_t>(epoch));
  Random random(mix(key, static_cast<std::uint64_t>(number)));
  Segment a{pair.a_begin, pair.a_begin + pair.a_count}, b{pair.b_begin, pair.b_begin + pair.b_count};
  truncate(a, b, static_cast<std::uint64_t>(options_.pairs.max_seq_length - 3), random);

  PretrainingExample example;
  const auto append = [&](std::int32_t id, std::int32_t type) {
    example.token_ids.push_back(id);
    example.token_types.push_back(type);
  };
  append(vocabulary_.cls, 0);
  for (std::uint64_t i = a.begin; i < a.end; ++i) append(corpus_.ids[i], 0);
  append(vocabulary_.sep, 0);
  for (std::uint64_t i = b.begin; i < b.end; ++i) append(corpus_.ids[i], 1);
  append(vocabulary_.sep, 1);
  mask_tokens(example, options_.masking, vocabulary_, random);
  example.next_sentence_label = pair.random_next ? 1 : 0;
  return example;
}

/// Pairs are drawn anew in every epoch, so any of them may be as long as is allowed.
std::vector<ExampleSize> PretrainingText::largest(std::int64_t count) const {
  return std::vector<ExampleSize>(static_cast<std::size_t>(count),
                                  {.tokens = longest(), .masked = predictions(longest(), options_.masking)});
}

std::size_t PretrainingText::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = corpus_.bytes();
  for (const Epoch& epoch : drawn_) bytes += epoch.pairs ? epoch.pairs->capacity() * sizeof(SegmentPair) : 0;
  return bytes;
}

}  // namespace bertrand::data
