#include "bert/tasks/squad_answers.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include "bert/text/python_text.h"
#include "bert/text/utf8.h"
#include "io/error.h"
#include "io/python_json.h"

namespace bertrand::tasks {
namespace {

/// Bytes of words that may be read for each answer that is wanted. A candidate costs its words; if a text has no
/// blanks, all of it is one word, and many candidates may come to the same answer.
constexpr std::size_t kMostRead = std::size_t{1} << 18;

/// A pair of positions of a window.
struct Candidate {
  std::size_t window = 0;
  std::int32_t start = 0, end = 0;
  double start_logit = 0, end_logit = 0;

  double score() const { return start_logit + end_logit; }
};

/// The positions of the `count` highest logits; of equal ones the first comes first.
std::vector<std::int32_t> best_positions(std::span<const double> logits, int count) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](std::int32_t i) { return logits[static_cast<std::size_t>(i)]; };
  std::ranges::stable_sort(order, [&](std::int32_t a, std::int32_t b) { return at(a) > at(b); });
  order.resize(std::min(order.size(), static_cast<std::size_t>(count)));
  return order;
}

void add_candidates(const ScoredWindow& scored, std::size_t number, const AnswerOptions& options,
                    std::vector<Candidate>& candidates) {
  const SquadWindow& window = scored.window;
  const std::int32_t begin = window.context_begin, context_end = begin + window.context_pieces();
  const auto in_context = [&](std::int32_t position) { return begin <= position && position < context_end; };
  const std::vector<std::int32_t> ends = best_positions(scored.end, options.n_best_size);
  for (const std::int32_t start : best_positions(scored.start, options.n_best_size)) {
    if (!in_context(start) || !window.is_best_window[static_cast<std::size_t>(start - begin)]) continue;
    for (const std::int32_t end : ends) {
      if (!in_context(end) || end < start || end - start + 1 > options.max_answer_length) continue;
      candidates.push_back({number, start, end, scored.start[static_cast<std::size_t>(start)],
                            scored.end[static_cast<std::size_t>(end)]});
    }
  }
}

/// The null answer of the window that has the lowest score for it.
Candidate null_candidate(std::span<const ScoredWindow> windows) {
  Candidate null;
  double least = 1'000'000;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    const Candidate own{i, 0, 0, windows[i].start[0], windows[i].end[0]};
    if (own.score() >= least) continue;
    least = own.score();
    null = own;
  }
  return null;
}

/// " ".join(pieces), with the pieces of a word put together.
std::string joined_pieces(std::span<const std::int32_t> ids, const text::Vocabulary& vocabulary) {
  std::string joined;
  for (const std::int32_t id : ids) joined.append(joined.empty() ? "" : " ").append(vocabulary.token(id));
  const auto erase_all = [&](std::string_view what) {
    for (std::size_t at = joined.find(what); at != std::string::npos; at = joined.find(what, at))
      joined.erase(at, what.size());
  };
  erase_all(" ##");
  erase_all("##");
  std::string text;
  for (const std::u32string& word : text::python_split(text::to_code_points(joined)))
    text.append(text.empty() ? "" : " ").append(text::to_utf8(word));
  return text;
}

/// Where the n-th character stands that is no blank.
std::vector<std::size_t> solid_places(const std::u32string& text) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != ' ') places.push_back(i);
  return places;
}

/// Fills in the text and, if it is known, its place. Returns the bytes that were read for it.
std::size_t find_text(AnswerCandidate& found, const Candidate& candidate, const SquadContext& context,
                      const SquadWindow& window, const text::Tokenizer& tokenizer) {
  const auto piece_at = [&](std::int32_t position) {
    return static_cast<std::size_t>(window.first_piece + position - window.context_begin);
  };
  const std::size_t first = piece_at(candidate.start), last = piece_at(candidate.end);
  if (!context.places.empty()) {
    const char* const end = context.places[last].data() + context.places[last].size();
    found.place = {context.places[first].data(), end};
    found.text = found.place;
    return 0;
  }
  const auto first_word = static_cast<std::size_t>(context.word_of_piece[first]);
  const auto end_word = static_cast<std::size_t>(context.word_of_piece[last]) + 1;
  const auto words = std::span(context.words).subspan(first_word, end_word - first_word);
  const std::string original = fmt::format("{}", fmt::join(words, " "));
  const auto pieces = std::span(context.pieces).subspan(first, last - first + 1);
  found.text = final_text(joined_pieces(pieces, tokenizer.vocabulary()), original, tokenizer);
  return original.size();
}

void add_probabilities(std::vector<AnswerCandidate>& n_best) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (const AnswerCandidate& entry : n_best) largest = std::max(largest, entry.start_logit + entry.end_logit);
  for (AnswerCandidate& entry : n_best)
    sum += entry.probability = std::exp(entry.start_logit + entry.end_logit - largest);
  for (AnswerCandidate& entry : n_best) entry.probability /= sum;
}

}  // namespace

std::string final_text(const std::string& predicted, const std::string& original, const text::Tokenizer& tokenizer) {
  const std::u32string wanted = text::to_code_points(predicted), own = text::to_code_points(original);
  const std::u32string tokenised = text::to_code_points(fmt::format("{}", fmt::join(tokenizer.words(original), " ")));
  const std::size_t at = tokenised.find(wanted);
  if (at == std::u32string::npos) return original;
  const std::vector<std::size_t> of_own = solid_places(own), of_tokenised = solid_places(tokenised);
  if (of_own.size() != of_tokenised.size()) return original;
  // The n-th solid character of the one is the n-th of the other.
  const auto place = [&](std::size_t i) -> std::optional<std::size_t> {
    const auto found = std::ranges::lower_bound(of_tokenised, i);
    if (found == of_tokenised.end() || *found != i) return {};
    return of_own[static_cast<std::size_t>(found - of_tokenised.begin())];
  };
  const auto first = place(at), last = place(at + wanted.size() - 1);
  if (!first || !last) return original;
  return text::to_utf8(std::u32string_view(own).substr(*first, *last + 1 - *first));
}

Answer best_answer(const SquadContext& context, std::span<const ScoredWindow> windows, const text::Tokenizer& tokenizer,
                   const AnswerOptions& options) {
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < windows.size(); ++i) add_candidates(windows[i], i, options, candidates);
  const Candidate null = null_candidate(windows);
  if (options.version_2) candidates.push_back(null);
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) { return a.score() > b.score(); });

  Answer answer;
  std::set<std::pair<const char*, std::string>> seen;  // of each candidate its place, if it is known, and its text
  std::size_t to_read = kMostRead * static_cast<std::size_t>(options.n_best_size);
  for (const Candidate& candidate : candidates) {
    if (answer.n_best.size() >= static_cast<std::size_t>(options.n_best_size)) break;
    AnswerCandidate found{.text = "", .start_logit = candidate.start_logit, .end_logit = candidate.end_logit};
    if (candidate.start > 0) {
      if (to_read == 0) continue;
      to_read -= std::min(to_read, find_text(found, candidate, context, windows[candidate.window].window, tokenizer));
    }
    if (!seen.emplace(found.place.data(), found.text).second) continue;
    answer.n_best.push_back(std::move(found));
  }
  if (options.version_2 && !seen.contains({nullptr, ""}))
    answer.n_best.push_back({"", 0, null.start_logit, null.end_logit});
  // Without any answer, or with none but the null one, something must stand for the others.
  if (answer.n_best.size() == (options.version_2 ? 1 : 0))
    answer.n_best.insert(answer.n_best.begin(), AnswerCandidate{.text = "empty"});
  add_probabilities(answer.n_best);

  answer.text = answer.n_best.front().text;
  if (!options.version_2) return answer;
  const auto best = std::ranges::find_if(answer.n_best, [](const AnswerCandidate& c) { return !c.text.empty(); });
  check(best != answer.n_best.end(), "answer: expected a candidate beside the null one, got none");
  const double null_score = windows.empty() ? 1'000'000 : null.score();
  answer.null_odds = null_score - best->start_logit - best->end_logit;
  answer.text = answer.null_odds > options.null_score_diff_threshold ? "" : best->text;
  return answer;
}

AnswerFiles::AnswerFiles(io::Files& files, const Place& place)
    : place_(place), predictions_(files, at("predictions.json")), n_best_(files, at("nbest_predictions.json")) {
  if (place.version_2) null_odds_.emplace(files, at("null_odds.json"));
}

void AnswerFiles::add(const std::string& id, const Answer& answer) {
  using io::python_json;
  predictions_.add(id, python_json(answer.text));
  if (null_odds_) null_odds_->add(id, python_json(answer.null_odds));
  std::vector<std::string> entries;
  for (const AnswerCandidate& entry : answer.n_best)
    entries.push_back(fmt::format(
        "\n        {{\n            \"text\": {},\n            \"probability\": {},\n            \"start_logit\": {},\n"
        "            \"end_logit\": {}\n        }}",
        python_json(entry.text), python_json(entry.probability), python_json(entry.start_logit),
        python_json(entry.end_logit)));
  n_best_.add(id, fmt::format("[{}\n    ]", fmt::join(entries, ",")));
}

void AnswerFiles::publish() {
  predictions_.publish();
  n_best_.publish();
  if (null_odds_) null_odds_->publish();
}

void AnswerFiles::File::add(const std::string& id, const std::string& value) {
  constexpr std::size_t kBlock = std::size_t{1} << 20;
  waiting_ += empty_ ? "{\n    " : ",\n    ";
  empty_ = false;
  waiting_ += io::python_json(id) + ": " + value;
  if (waiting_.size() < kBlock) return;  // fewer and larger writes, for speed alone
  out_.write(waiting_);
  waiting_.clear();
}

void AnswerFiles::File::publish() {
  out_.write(waiting_ + (empty_ ? "{}\n" : "\n}\n"));
  out_.publish();
}

}  // namespace bertrand::tasks
