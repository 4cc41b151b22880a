// Pre-training instances in the order of Google's random numbers.
#include "bert/data/google_instances.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "bert/data/pretraining_text_masks.h"
#include "io/error.h"

namespace bertrand::data {
namespace {

constexpr std::int64_t kLeastLength = 5;  // three special tokens and a token in each segment
constexpr std::int64_t kMostLength = 65536;

void check_options(const GoogleOptions& options) {
  const auto require = [](bool good, const char* flag, const char* expected, auto got) {
    if (!good) fail(Failure::usage, "{}: expected {}, got {}", flag, expected, got);
  };
  require(kLeastLength <= options.max_seq_length && options.max_seq_length <= kMostLength, "--max-seq-length",
          "5 to 65536", options.max_seq_length);
  require(options.max_predictions >= 0, "--max-predictions-per-seq", "at least 0", options.max_predictions);
  require(options.masked_lm_prob >= 0 && options.masked_lm_prob <= 1, "--masked-lm-prob", "0 to 1",
          options.masked_lm_prob);
  require(options.short_seq_prob >= 0 && options.short_seq_prob <= 1, "--short-seq-prob", "0 to 1",
          options.short_seq_prob);
  require(options.dupe_factor >= 1, "--dupe-factor", "at least 1", options.dupe_factor);
}

}  // namespace

GoogleInstances::GoogleInstances(const Corpus& corpus, const text::Vocabulary& vocabulary, const GoogleOptions& options)
    : corpus_(corpus),
      options_(options),
      mask_id_(vocabulary.mask_id()),
      words_(vocabulary.distinct_ids()),
      continues_word_(static_cast<std::size_t>(vocabulary.size())),
      random_(options.seed),
      documents_(corpus.documents.count()) {
  check_options(options);
  for (const auto& [name, id] : {std::pair{"[CLS]", vocabulary.cls_id()}, std::pair{"[SEP]", vocabulary.sep_id()},
                                 std::pair{"[MASK]", vocabulary.mask_id()}}) {
    if (id < 0) fail(Failure::input, "vocabulary: expected the special token {}, got none", name);
  }
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    continues_word_[static_cast<std::size_t>(id)] = vocabulary.token(id).starts_with("##");
  }
  std::iota(documents_.begin(), documents_.end(), std::uint64_t{0});
}

std::uint64_t GoogleInstances::sentences(std::uint64_t document) const {
  return corpus_.documents.documents[document + 1] - corpus_.documents.documents[document];
}

// Sentences [first, last) of a document as one run of tokens.
GoogleInstances::Run GoogleInstances::run(std::uint64_t document, std::uint64_t first, std::uint64_t last) const {
  const std::uint64_t* begins = corpus_.documents.sentences.data() + corpus_.documents.documents[document];
  return {begins[first], begins[last] - begins[first]};
}

void GoogleInstances::draw(const std::function<void(const Instance&, std::uint64_t)>& take) {
  random_.shuffle(std::span(documents_));
  std::uint64_t documents_done = 0;
  const std::function<void(const Instance&)> take_one = [&](const Instance& instance) {
    ++count_;
    take(instance, documents_done);
  };
  for (std::int64_t dupe = 0; dupe < options_.dupe_factor; ++dupe) {
    for (std::uint64_t number = 0; number < documents_.size(); ++number, ++documents_done)
      draw_document(number, take_one);
  }
}

std::vector<std::uint32_t> GoogleInstances::order() {
  if (count_ > std::numeric_limits<std::uint32_t>::max()) {
    fail(Failure::usage, "--dupe-factor: expected at most 2^32 instances, got {}; hint: split the input", count_);
  }
  std::vector<std::uint32_t> numbers(count_);
  std::iota(numbers.begin(), numbers.end(), 0u);
  random_.shuffle(std::span(numbers));
  return numbers;
}

// create_instances_from_document. Which calls are made, and in which order, is part of the result.
void GoogleInstances::draw_document(std::uint64_t document_number, const std::function<void(const Instance&)>& take) {
  const std::uint64_t document = documents_[document_number];
  const std::uint64_t last = sentences(document) - 1;
  const auto most_tokens = static_cast<std::uint64_t>(options_.max_seq_length) - 3;
  std::uint64_t target = most_tokens;
  if (random_.random() < options_.short_seq_prob) target = 2 + random_.below(most_tokens - 1);

  std::uint64_t chunk_begin = 0;
  for (std::uint64_t i = 0; i <= last; ++i) {
    if (i != last && run(document, chunk_begin, i + 1).count < target) continue;
    const std::uint64_t chunk_size = i + 1 - chunk_begin;
    const std::uint64_t a_size = chunk_size >= 2 ? 1 + random_.below(chunk_size - 1) : 1;
    Run a = run(document, chunk_begin, chunk_begin + a_size);
    Run b{};
    instance_.is_random_next = chunk_size == 1 || random_.random() < 0.5;
    if (instance_.is_random_next) {
      b = draw_random_next(document_number, target - std::min(target, a.count));
      i = chunk_begin + a_size - 1;  // the sentences that this pair does not use are used again
    } else {
      b = run(document, chunk_begin + a_size, i + 1);
    }
    truncate(a, b, most_tokens);
    instance_.a_begin = a.begin;
    instance_.b_begin = b.begin;
    instance_.a_count = static_cast<std::uint32_t>(a.count);
    instance_.b_count = static_cast<std::uint32_t>(b.count);
    mask();
    take(instance_);
    chunk_begin = i + 1;
  }
}

// Sentences from somewhere in another document, until they have `target` tokens. Google's code tries ten times to find
// another document and then takes the one it has, which may be the same: so it is with a single document.
GoogleInstances::Run GoogleInstances::draw_random_next(std::uint64_t document_number, std::uint64_t target) {
  constexpr int kTries = 10;
  std::uint64_t other = document_number;
  for (int i = 0; i < kTries && other == document_number; ++i) other = random_.below(documents_.size());
  const std::uint64_t document = documents_[other];
  const std::uint64_t count = sentences(document);
  const std::uint64_t first = random_.below(count);
  std::uint64_t last = first + 1;
  while (last < count && run(document, first, last).count < target) ++last;
  return run(document, first, last);
}

// truncate_seq_pair: takes tokens from the front or the back of the longer segment, B if they are equal.
void GoogleInstances::truncate(Run& a, Run& b, std::uint64_t most) {
  while (a.count + b.count > most) {
    Run& longer = a.count > b.count ? a : b;
    if (random_.random() < 0.5) ++longer.begin;
    --longer.count;
  }
}

void GoogleInstances::list_groups() {
  positions_.clear();
  groups_.clear();
  const auto add = [&](std::uint64_t token, std::uint32_t position) {
    const auto index = static_cast<std::uint32_t>(positions_.size());
    positions_.push_back(position);
    if (options_.whole_words && !groups_.empty() &&
        continues_word_[static_cast<std::size_t>(corpus_.ids[static_cast<std::size_t>(token)])]) {
      ++groups_.back().count;
    } else {
      groups_.push_back({index, 1});
    }
  };
  for (std::uint32_t i = 0; i < instance_.a_count; ++i) add(instance_.a_begin + i, 1 + i);
  for (std::uint32_t i = 0; i < instance_.b_count; ++i) add(instance_.b_begin + i, 2 + instance_.a_count + i);
}

// create_masked_lm_predictions.
void GoogleInstances::mask() {
  list_groups();
  random_.shuffle(std::span(groups_));
  const std::int64_t tokens = std::int64_t{instance_.a_count} + instance_.b_count + 3;
  const auto most = static_cast<std::size_t>(
      prediction_count(tokens, {.probability = options_.masked_lm_prob, .max_predictions = options_.max_predictions}));

  const auto original = [&](std::uint32_t position) {
    const std::uint64_t token = position <= instance_.a_count ? instance_.a_begin + position - 1
                                                              : instance_.b_begin + position - 2 - instance_.a_count;
    return corpus_.ids[static_cast<std::size_t>(token)];
  };
  instance_.masked.clear();
  for (const Group& group : groups_) {
    if (instance_.masked.size() + group.count > most) continue;
    for (std::uint32_t i = group.begin; i < group.begin + group.count; ++i) {
      std::int32_t replacement = mask_id_;
      if (!(random_.random() < 0.8)) {
        replacement =
            random_.random() < 0.5 ? original(positions_[i]) : random_.choice(std::span<const std::int32_t>(words_));
      }
      instance_.masked.push_back({positions_[i], replacement});
    }
  }
  std::ranges::sort(instance_.masked, {}, &MaskedToken::position);
}

void instance_tokens(const Instance& instance, const Corpus& corpus, const text::Vocabulary& vocabulary,
                     std::vector<std::int32_t>& ids) {
  ids.clear();
  ids.push_back(vocabulary.cls_id());
  for (std::uint64_t i = 0; i < instance.a_count; ++i) ids.push_back(corpus.ids[instance.a_begin + i]);
  ids.push_back(vocabulary.sep_id());
  for (std::uint64_t i = 0; i < instance.b_count; ++i) ids.push_back(corpus.ids[instance.b_begin + i]);
  ids.push_back(vocabulary.sep_id());
}

}  // namespace bertrand::data
