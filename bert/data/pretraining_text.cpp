// Examples drawn from a corpus for each epoch.
#include "bert/data/pretraining_text.h"

#include <algorithm>
#include <future>

#include "io/error.h"
#include "io/signals.h"
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

PretrainingText::PretrainingText(std::shared_ptr<const CorpusView> corpus, const text::Vocabulary& vocabulary,
                                 const PretrainingTextOptions& options)
    : options_(options),
      vocabulary_(masking_vocabulary(vocabulary)),
      corpus_(std::move(corpus)),
      drawn_(std::size_t{1} << 13) {
  const std::uint64_t documents = corpus_->documents();
  if (options.pairs.next_sentence && (documents < 2 || documents >= std::uint64_t{1} << 32))
    fail(Failure::input, "corpus: documents: expected 2 to 4294967295, got {}; hint: {}", documents,
         "random next sentences come from other documents");
}

DocumentPairs PretrainingText::pairs(std::int64_t epoch, std::uint64_t document, const PairPlace& from) const {
  const std::uint64_t key = mix(mix(options_.seed, hash_name("sentence pairs")), static_cast<std::uint64_t>(epoch));
  return {*corpus_, document, options_.pairs, mix(key, document), from};
}

/// Documents [first, last).
PretrainingText::Counted PretrainingText::count(std::int64_t epoch, std::uint64_t first, std::uint64_t last) const {
  constexpr std::uint64_t kOfMark = 1024, kLetGo = 64;  // sentences, marks
  Counted counted;
  std::uint64_t of_mark = kOfMark;
  for (std::uint64_t document = first; document < last; ++document) {
    for (DocumentPairs pairs = this->pairs(epoch, document); !pairs.at_end(); ++counted.examples) {
      const PairPlace place = pairs.place();
      if (of_mark >= kOfMark) {
        counted.marks.push_back({counted.examples, document, place});
        of_mark = 0;
        if (counted.marks.size() % kLetGo == 0) {  // for speed alone not at each
          io::leave_if_requested("counting an epoch's examples");
          corpus_->let_go();  // for memory alone
        }
      }
      pairs.pass();
      // A sentence may fill many examples.
      of_mark += std::max<std::uint64_t>(1, pairs.place().sentence - place.sentence);
    }
  }
  return counted;
}

std::shared_ptr<const PretrainingText::Counted> PretrainingText::counted(std::int64_t epoch) {
  const std::lock_guard lock(mutex_);
  Epoch& kept = counted_[static_cast<std::size_t>(epoch % 2)];
  if (kept.number == epoch) return kept.counted;
  const auto parts = static_cast<std::uint64_t>(std::max(1, options_.threads));
  const std::uint64_t documents = corpus_->documents();
  std::vector<std::future<Counted>> futures;
  for (std::uint64_t part = 0; part < parts; ++part)
    futures.push_back(std::async(std::launch::async, [=, this] {
      return count(epoch, documents * part / parts, documents * (part + 1) / parts);
    }));
  Counted all;
  for (std::future<Counted>& future : futures) {
    const Counted part = future.get();
    for (const Mark& mark : part.marks) all.marks.push_back({all.examples + mark.example, mark.document, mark.place});
    all.examples += part.examples;
  }
  // This is for memory alone.
  corpus_->let_go();
  kept = {epoch, std::make_shared<const Counted>(std::move(all))};
  return kept.counted;
}

std::int64_t PretrainingText::examples(std::int64_t epoch) {
  return static_cast<std::int64_t>(counted(epoch)->examples);
}

SegmentPair PretrainingText::pair(std::int64_t epoch, std::int64_t number) {
  const std::shared_ptr<const Counted> counted = this->counted(epoch);
  const auto wanted = static_cast<std::uint64_t>(number);
  check(wanted < counted->examples, "corpus: example {} of {}", number, counted->examples);
  Drawn& kept = drawn_[wanted % drawn_.size()];
  if (const std::lock_guard lock(mutex_); kept.epoch == epoch && kept.number == number) return kept.pair;
  auto [example, document, place] = *--std::ranges::upper_bound(counted->marks, wanted, {}, &Mark::example);
  for (;; ++document, place = {}) {
    DocumentPairs pairs = this->pairs(epoch, document, place);
    for (; !pairs.at_end() && example < wanted; ++example) pairs.pass();
    if (pairs.at_end()) continue;
    const SegmentPair pair = pairs.pair();
    corpus_->let_go();  // for memory alone
    const std::lock_guard lock(mutex_);
    kept = {epoch, number, pair};  // for speed alone: its size is asked for first, then the example
    return pair;
  }
}

std::int64_t PretrainingText::tokens(std::int64_t epoch, std::int64_t number) {
  const SegmentPair pair = this->pair(epoch, number);
  const std::int64_t room = options_.pairs.room();
  return std::min(std::int64_t{pair.a_count} + pair.b_count, room) + options_.pairs.max_seq_length - room;
}

PretrainingExample PretrainingText::example(std::int64_t epoch, std::int64_t number) {
  const SegmentPair pair = this->pair(epoch, number);
  const std::uint64_t key = mix(mix(options_.seed, hash_name("masking")), static_cast<std::uint64_t>(epoch));
  Random random(mix(key, static_cast<std::uint64_t>(number)));
  Segment a{pair.a_begin, pair.a_begin + pair.a_count}, b{pair.b_begin, pair.b_begin + pair.b_count};
  truncate(a, b, static_cast<std::uint64_t>(options_.pairs.room()), random);

  PretrainingExample example;
  example.token_ids.push_back(vocabulary_.cls);
  corpus_->append_ids(a.begin, a.count(), example.token_ids);
  example.token_ids.push_back(vocabulary_.sep);
  example.token_types.resize(example.token_ids.size(), 0);
  if (options_.pairs.next_sentence) {
    corpus_->append_ids(b.begin, b.count(), example.token_ids);
    example.token_ids.push_back(vocabulary_.sep);
    example.token_types.resize(example.token_ids.size(), 1);
  }
  // This is for memory alone.
  corpus_->let_go();
  mask_tokens(example, options_.masking, vocabulary_, random);
  example.next_sentence_label = pair.random_next ? 1 : 0;
  return example;
}

/// Pairs are drawn anew in every epoch, so any of them may be as long as is allowed.
std::vector<ExampleSize> PretrainingText::largest(std::int64_t count) const {
  return std::vector<ExampleSize>(static_cast<std::size_t>(count),
                                  {.tokens = longest(), .masked = prediction_count(longest(), options_.masking)});
}

std::size_t PretrainingText::bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t bytes = corpus_->bytes() + drawn_.size() * sizeof(Drawn);
  for (const Epoch& epoch : counted_) bytes += epoch.counted ? epoch.counted->marks.capacity() * sizeof(Mark) : 0;
  return bytes;
}

}  // namespace bertrand::data
