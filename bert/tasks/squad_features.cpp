#include "bert/tasks/squad_features.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <optional>

#include "bert/tasks/attempt.h"
#include "bert/text/python_text.h"
#include "bert/text/utf8.h"
#include "io/error.h"
#include "io/in_order.h"

namespace bertrand::tasks {
namespace {

/// is_whitespace of run_squad.py, which is not Python's.
bool is_space(char32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == 0x202F; }

/// Where each word begins and ends, in bytes; every run of white space separates two.
std::vector<std::string_view> cut_words(std::string_view text) {
  std::vector<std::string_view> words;
  const char *p = text.data(), *const end = p + text.size();
  const char* begin = nullptr;  // of the word that is being read
  while (p < end) {
    const char* const at = p;
    const bool space = is_space(text::decode_utf8(p));
    if (!space && !begin) begin = at;
    if (space && begin) words.emplace_back(begin, static_cast<std::size_t>(at - begin)), begin = nullptr;
  }
  if (begin) words.emplace_back(begin, static_cast<std::size_t>(end - begin));
  return words;
}

SquadContext cut_context(std::string_view text, text::CachingTokenizer& caching, bool with_places) {
  SquadContext context{.words = cut_words(text), .pieces = {}, .word_of_piece = {}, .first_piece = {}};
  for (std::size_t word = 0; word < context.words.size(); ++word) {
    context.first_piece.push_back(static_cast<std::int32_t>(context.pieces.size()));
    const std::span<const std::int32_t> ids = caching.encode(context.words[word]);
    context.pieces.insert(context.pieces.end(), ids.begin(), ids.end());
    context.word_of_piece.insert(context.word_of_piece.end(), ids.size(), static_cast<std::int32_t>(word));
    if (!with_places) continue;
    const std::vector<std::string_view> places = caching.places(context.words[word]);
    context.places.insert(context.places.end(), places.begin(), places.end());
  }
  return context;
}

/// The word in which the code point number `place` of the text stands, or after which it stands if it is white space;
/// -1 before the first word. Nothing beyond the text.
std::optional<std::int32_t> word_at(std::string_view text, std::int64_t place) {
  std::int32_t word = -1;
  bool in_word = false;
  const char *p = text.data(), *const end = p + text.size();
  for (std::int64_t i = 0; p < end; ++i) {
    const bool space = is_space(text::decode_utf8(p));
    if (!space && !in_word) ++word;
    in_word = !space;
    if (i == place) return word;
  }
  return {};
}

std::string joined_words(std::span<const std::string_view> words) { return fmt::format("{}", fmt::join(words, " ")); }

/// " ".join(text.split())
std::string cleaned(const std::string& text) {
  std::string joined;
  for (const std::u32string& word : text::python_split(text::to_code_points(text)))
    joined.append(joined.empty() ? "" : " ").append(text::to_utf8(word));
  return joined;
}

struct Span {
  std::int32_t begin = 0, count = 0;
  std::int32_t end() const { return begin + count; }
};

/// The windows over `pieces` pieces, of at most `longest`.
std::vector<Span> spans_of(std::int32_t pieces, std::int32_t longest, std::int32_t stride) {
  std::vector<Span> spans;
  for (std::int32_t begin = 0; begin < pieces;) {
    const std::int32_t count = std::min(pieces - begin, longest);
    spans.push_back({begin, count});
    if (begin + count == pieces) break;
    begin += std::min(count, stride);
  }
  return spans;
}

/// The window in which a piece has most context: the smaller of what is left and right of it, and a hundredth of the
/// window's length; the first of equals.
std::size_t best_window(std::span<const Span> spans, std::int32_t piece) {
  std::size_t best = 0;
  double best_score = -1;
  // Beginnings and ends ascend, so the windows that hold the piece stand together.
  const auto first = std::ranges::partition_point(spans, [&](const Span& span) { return span.end() <= piece; });
  for (auto i = static_cast<std::size_t>(first - spans.begin()); i < spans.size() && spans[i].begin <= piece; ++i) {
    const std::int32_t left = piece - spans[i].begin, right = spans[i].end() - 1 - piece;
    const double score = std::min(left, right) + 0.01 * spans[i].count;
    if (score <= best_score) continue;
    best_score = score;
    best = i;
  }
  return best;
}

}  // namespace

void SquadOptions::check() const {
  if (doc_stride < 1) fail(Failure::usage, "--doc-stride: expected at least 1, got {}", doc_stride);
  if (max_seq_length <= max_query_length + 3)
    fail(Failure::usage, "--max-seq-length: expected more than --max-query-length {} and 3, got {}", max_query_length,
         max_seq_length);
}

SquadFeatures::SquadFeatures(const std::vector<SquadParagraph>& paragraphs, const text::Tokenizer& tokenizer,
                             const SquadOptions& options, std::vector<std::string>* bad)
    : paragraphs_(paragraphs), tokenizer_(tokenizer), options_(options), contexts_(paragraphs.size()) {
  options_.check();
  const std::size_t threads = static_cast<std::size_t>(std::max(options.threads, 1));
  std::vector<std::future<void>> parts(threads);
  for (std::size_t thread = 0; thread < threads; ++thread)
    parts[thread] = std::async(std::launch::async, [&, thread] {
      text::CachingTokenizer caching(tokenizer_);
      for (std::size_t i = thread; i < paragraphs_.size(); i += threads)
        contexts_[i] = cut_context(paragraphs_[i].context, caching, options_.places);
    });
  for (std::future<void>& part : parts) part.get();
  for (std::size_t i = 0; i < paragraphs_.size(); ++i)
    for (const SquadQuestion& question : paragraphs_[i].questions) attempt(bad, [&] { add_example(question, i); });
}

void SquadFeatures::add_example(const SquadQuestion& question, std::size_t paragraph) {
  SquadExample example{.question = &question, .paragraph = paragraph};
  if (options_.training && options_.version_2) {
    if (!question.is_impossible)
      fail(Failure::input, "{}: question {}: is_impossible: expected true or false, as in SQuAD 2.0, got none",
           options_.file, question.id);
    example.is_impossible = *question.is_impossible;
  }
  if (options_.training && !example.is_impossible && !find_answer(question, paragraph, example)) return;
  examples_.push_back(example);
}

/// False, with a warning, if the answer is not where the file says.
bool SquadFeatures::find_answer(const SquadQuestion& question, std::size_t paragraph, SquadExample& example) {
  if (question.answers.size() != 1)
    fail(Failure::input, "{}: question {}: answers: expected exactly one to train on, got {}{}", options_.file,
         question.id, question.answers.size(),
         question.is_impossible.value_or(false)
             ? "; hint: questions without an answer are of SQuAD 2.0: --task squad2 (prepare squad: --version-2)"
         : question.answers.size() > 1
             ? "; hint: only a file to evaluate on has several; keep the first of each question"
             : "");
  const SquadAnswer& answer = question.answers.front();
  const std::string_view context = paragraphs_[paragraph].context;
  const std::int64_t characters = text::count_code_points(answer.text);
  const auto first = word_at(context, answer.start);
  std::int64_t end = answer.start + characters - 1;
  if (end < 0) end = text::count_code_points(context) - 1;  // as Python counts: the whole context
  const auto last = word_at(context, end);
  if (!first || !last)
    fail(Failure::input,
         "{}: question {}: answer_start: expected an answer within the context's {} characters, got {} to {}",
         options_.file, question.id, text::count_code_points(context), answer.start, answer.start + characters);
  const std::span<const std::string_view> words = contexts_[paragraph].words;
  // What begins in the white space before the first word begins with word -1: as Python counts, the last one.
  example.first_word = *first >= 0 ? *first : std::max(static_cast<std::int32_t>(words.size()) - 1, 0);
  example.last_word = *last;  // before the first one if the answer is empty
  const auto count = static_cast<std::size_t>(std::max(example.last_word - example.first_word + 1, 0));
  const std::string found =
      words.empty() ? "" : joined_words(words.subspan(static_cast<std::size_t>(example.first_word), count));
  const std::string wanted = cleaned(answer.text);
  example.answer_is_empty = wanted.empty();
  if (found.find(wanted) != std::string::npos && !words.empty()) return true;
  warnings_.push_back(fmt::format("question {}: Could not find answer: '{}' vs. '{}'", question.id, found, wanted));
  return false;
}

/// The pieces of an answer's words, narrowed to those that are the answer's own pieces if there are any: "1895" within
/// "(1895-1943)." (_improve_answer_span).
SquadFeatures::Pieces SquadFeatures::answer_pieces(const SquadExample& example, text::CachingTokenizer& caching) const {
  const SquadContext& context = contexts_[example.paragraph];
  const auto after = static_cast<std::size_t>(example.last_word) + 1;
  const Pieces whole{.first = context.first_piece[static_cast<std::size_t>(example.first_word)],
                     .last = (after < context.words.size() ? context.first_piece[after]
                                                           : static_cast<std::int32_t>(context.pieces.size())) -
                             1};
  const std::span<const std::int32_t> answer = caching.encode(example.question->answers.front().text);
  const auto length = static_cast<std::int32_t>(answer.size());
  if (length == 0) return whole;
  for (std::int32_t first = whole.first; first + length - 1 <= whole.last; ++first)
    if (std::ranges::equal(answer, std::span(context.pieces).subspan(static_cast<std::size_t>(first), answer.size())))
      return {first, first + length - 1};
  return whole;
}

void SquadFeatures::windows(const SquadExample& example, text::CachingTokenizer& caching,
                            std::vector<SquadWindow>& out) const {
  const SquadContext& context = contexts_[example.paragraph];
  const text::Vocabulary& vocabulary = tokenizer_.vocabulary();
  std::vector<std::int32_t> head = {vocabulary.cls_id()};
  const std::span<const std::int32_t> query = caching.encode(example.question->question);
  const std::size_t query_pieces = query.size();
  const std::size_t kept = std::min(query_pieces, static_cast<std::size_t>(options_.max_query_length));
  head.insert(head.end(), query.begin(), query.begin() + static_cast<std::ptrdiff_t>(kept));
  head.push_back(vocabulary.sep_id());
  const auto begin = static_cast<std::int32_t>(head.size());

  const bool answered = options_.training && !example.is_impossible;
  const Pieces answer = answered ? answer_pieces(example, caching) : Pieces{};
  const auto spans = spans_of(static_cast<std::int32_t>(context.pieces.size()), options_.max_seq_length - begin - 1,
                              options_.doc_stride);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    SquadWindow window{.token_ids = head,
                       .context_begin = begin,
                       .number = static_cast<std::int32_t>(i),
                       .first_piece = span.begin,
                       .cut_question = kept < query_pieces,
                       .is_best_window = {}};
    const auto pieces = context.pieces.begin() + span.begin;
    window.token_ids.insert(window.token_ids.end(), pieces, pieces + span.count);
    window.token_ids.push_back(vocabulary.sep_id());
    for (std::int32_t piece = span.begin; piece < span.end(); ++piece)
      window.is_best_window.push_back(best_window(spans, piece) == i);
    if (answered && span.begin <= answer.first && answer.last < span.end()) {
      window.start = begin + answer.first - span.begin;
      window.end = begin + answer.last - span.begin;
    }
    out.push_back(std::move(window));
  }
}

void SquadFeatures::for_windows(
    const std::function<void(const SquadExample&, std::span<const SquadWindow>)>& use) const {
  using Windows = std::vector<SquadWindow>;
  const auto make = [&](std::size_t first, std::size_t end) {  // those of each example
    text::CachingTokenizer caching(tokenizer_);
    std::vector<Windows> batch(end - first);
    for (std::size_t i = first; i < end; ++i) windows(examples_[i], caching, batch[i - first]);
    return batch;
  };
  std::size_t example = 0;
  io::in_order({.count = examples_.size(), .threads = options_.threads}, make, [&](const std::vector<Windows>& batch) {
    for (const Windows& of_example : batch) use(examples_[example++], of_example);
  });
}

void walk_features(const std::function<void(const ParagraphUse& add)>& walk, const text::Tokenizer& tokenizer,
                   const SquadOptions& options, const std::function<void(const SquadFeatures&)>& use,
                   std::vector<std::string>* bad) {
  constexpr std::size_t kBytes = std::size_t{1} << 22;
  std::vector<SquadParagraph> some;
  std::size_t bytes = 0;
  const auto use_some = [&] {
    use(SquadFeatures(some, tokenizer, options, bad));
    some.clear();
    bytes = 0;  // how large the parts are is for memory alone
  };
  walk([&](SquadParagraph&& paragraph) {
    bytes += text_bytes(paragraph);  // for memory alone
    some.push_back(std::move(paragraph));
    if (bytes >= kBytes) use_some();  // for memory alone: the last call would take all
  });
  use_some();
}

}  // namespace bertrand::tasks
