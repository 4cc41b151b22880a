// Which segments of a corpus make a pair.
#include "bert/data/pretraining_text_pairs.h"

#include "io/error.h"

namespace bertrand::data {

namespace {

std::int64_t below(std::int64_t bound, Random& random) { return random.below(static_cast<std::uint32_t>(bound)); }

/// The end of the run of sentences from `first` on that has `target` tokens, or ends with the document.
std::size_t end_of_run(const Sentences& sentences, std::size_t first, std::int64_t target) {
  std::size_t last = first;
  std::int64_t tokens = 0;
  do tokens += sentences.tokens(last++);
  while (last < sentences.count() && tokens < target);
  return last;
}

std::uint32_t tokens(const Sentences& sentences, std::size_t first, std::size_t last) {
  return static_cast<std::uint32_t>(sentences[last] - sentences[first]);
}

/// Short pairs in some documents, as many tokens as fit in the others.
std::int64_t draw_target(const PairOptions& options, Random& random) {
  const std::int64_t longest = options.room();
  return random.uniform() < options.short_seq_prob ? 2 + below(longest - 1, random) : longest;
}

}  // namespace

DocumentPairs::DocumentPairs(const CorpusView& corpus, std::uint64_t document, const PairOptions& options,
                             std::uint64_t key, const PairPlace& from)
    : corpus_(corpus),
      document_(document),
      key_(key),
      options_(options),
      sentences_(corpus.sentences(document)),
      random_(key),
      target_(draw_target(options, random_)),
      last_(from.sentence),
      token_(from.token) {
  if (from.sentence > 0) random_ = Random(key, from.drawn);
  pass();
}

void DocumentPairs::pass() {
  // Sentences that a random B displaced are used by the next pair.
  place_ = {.sentence = random_next_ ? middle_ : last_, .drawn = random_.drawn(), .token = token_};
  if (at_end()) return;
  if (options_.next_sentence) end_a_and_b();
  else end_a_alone();
}

void DocumentPairs::end_a_and_b() {
  const std::size_t first = place_.sentence;
  last_ = end_of_run(sentences_, first, target_);
  const auto count = static_cast<std::int64_t>(last_ - first);
  middle_ = count >= 2 ? first + 1 + static_cast<std::size_t>(below(count - 1, random_)) : last_;
  random_next_ = count == 1 || random_.uniform() < 0.5;
}

/// A has what is left of its first sentence, and then whole sentences up to target_ tokens. A sentence that is longer
/// than an example fills it, and goes on in the next one.
void DocumentPairs::end_a_alone() {
  last_ = place_.sentence;
  std::int64_t count = sentences_.tokens(last_) - place_.token;
  if (count > options_.room()) {
    token_ = place_.token + options_.room();
    return;
  }
  token_ = 0;
  for (++last_; last_ < sentences_.count(); ++last_)
    if ((count += sentences_.tokens(last_)) > target_) break;
}

SegmentPair DocumentPairs::pair() const { return options_.next_sentence ? a_and_b() : a_alone(); }

SegmentPair DocumentPairs::a_alone() const {
  const std::uint64_t begin = sentences_[place_.sentence] + static_cast<std::uint64_t>(place_.token),
                      end = sentences_[last_] + static_cast<std::uint64_t>(token_);
  return {.a_begin = begin, .a_count = static_cast<std::uint32_t>(end - begin)};
}

SegmentPair DocumentPairs::a_and_b() const {
  const std::size_t first = place_.sentence;
  SegmentPair pair{
      .a_begin = sentences_[first], .a_count = tokens(sentences_, first, middle_), .random_next = random_next_};
  if (!random_next_) {
    pair.b_begin = sentences_[middle_];
    pair.b_count = tokens(sentences_, middle_, last_);
    return pair;
  }
  // Sentences of another document, from a random one on, until there are as many tokens as A leaves room for.
  Random random(mix(key_, first + 1));
  auto other = static_cast<std::uint64_t>(below(static_cast<std::int64_t>(corpus_.documents()) - 1, random));
  if (other >= document_) ++other;
  const Sentences there = corpus_.sentences(other);
  const auto begin = static_cast<std::size_t>(below(static_cast<std::int64_t>(there.count()), random));
  pair.b_begin = there[begin];
  pair.b_count = tokens(there, begin, end_of_run(there, begin, target_ - pair.a_count));
  return pair;
}

}  // namespace bertrand::data
