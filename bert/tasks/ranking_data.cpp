// Triples and candidates, line by line.
#include "bert/tasks/ranking_data.h"

#include <algorithm>
#include <array>
#include <map>

#include "bert/tasks/attempt.h"
#include "io/error.h"
#include "io/signals.h"
#include "io/split.h"

namespace bertrand::tasks {
namespace {

bool has_no_text(std::string_view text) { return text.find_first_not_of(" \t\r") == std::string_view::npos; }

/// Counts what is no UTF-8 in a part of a line.
void add_invalid(std::string_view part, std::string_view line, std::int64_t number, text::InvalidBytes& invalid) {
  std::string valid;
  text::DroppedBytes dropped = text::drop_invalid_utf8(part, valid);
  dropped.first += static_cast<std::size_t>(part.data() - line.data());
  invalid.add(dropped, static_cast<std::uint64_t>(number));
}

/// Refuses a file whose lines are all bad, or that has none.
[[noreturn]] void refuse_nothing(const std::filesystem::path& file, std::string_view what,
                                 const std::vector<std::string>* bad) {
  if (bad && !bad->empty()) throw OnlyBadRows(*bad, 0, fmt::format("; no line of the file is a {}", what));
  fail(Failure::input, "{}: expected at least one {}, got none", file.string(), what);
}

/// At most `most` pieces of a text, valid until the next call.
std::span<const std::int32_t> pieces_of(std::string_view text, std::size_t most, text::CachingTokenizer& caching) {
  const std::span<const std::int32_t> ids = caching.encode(text);
  return ids.first(std::min(most, ids.size()));
}

}  // namespace

bool ColumnReader::next(std::span<std::string_view> columns) {
  std::int64_t blank = 0;  // the first line of those before this one
  while (lines_.next(text_)) {
    if (has_no_text(text_)) {
      if (blank == 0) blank = lines_.number();
      continue;
    }
    if (blank != 0)
      attempt(bad_, [&] {
        fail(Failure::input, "{}:{}: columns: expected {}, got an empty line", lines_.name(), blank, names_);
      });
    blank = 0;
    if (attempt(bad_, [&] { cut(columns); })) return true;
  }
  return false;
}

/// Throws Failure::input unless the line has just as many columns, none of them blank.
void ColumnReader::cut(std::span<std::string_view> columns) const {
  const auto found = static_cast<std::size_t>(std::ranges::count(text_, '\t')) + 1;
  if (found != columns.size())
    fail(Failure::input, "{}: columns: expected {} between tabs, got {} of them", lines_.where(), names_, found);
  std::size_t i = 0;
  for (const std::string_view column : io::split(text_, '\t')) {
    columns[i++] = column;
    if (has_no_text(column))
      fail(Failure::input, "{}: column {}: expected {} with a text each, got an empty one", lines_.where(), i, names_);
  }
}

RankingEncoder::RankingEncoder(const text::Tokenizer& tokenizer, const RankingLengths& lengths)
    : lengths_(lengths),
      special_{.cls = tokenizer.vocabulary().cls_id(), .sep = tokenizer.vocabulary().sep_id()},
      caching_(tokenizer) {
  if (lengths.query < 3) fail(Failure::usage, "--max-query-length: expected at least 3, got {}", lengths.query);
  if (lengths.sequence < lengths.query + 2)
    fail(Failure::usage, "--max-seq-length: expected at least --max-query-length + 2 = {}, got {}", lengths.query + 2,
         lengths.sequence);
}

void RankingEncoder::append(std::string_view query, std::string_view passage, EncodedDataset& to) {
  if (query_ids_.empty() || query != query_) {
    query_ = query;  // whose next passage finds its pieces made, for speed alone
    query_ids_ = {special_.cls};
    const auto pieces = pieces_of(query, static_cast<std::size_t>(lengths_.query - 2), caching_);
    query_ids_.insert(query_ids_.end(), pieces.begin(), pieces.end());
    query_ids_.push_back(special_.sep);
  }
  to.token_ids.append(query_ids_);
  to.token_ids.append(
      pieces_of(passage, static_cast<std::size_t>(lengths_.sequence) - query_ids_.size() - 1, caching_));
  to.token_ids.push_back(special_.sep);
  to.end_example(static_cast<std::int32_t>(query_ids_.size()));
}

Triples read_triples(const std::filesystem::path& file, RankingEncoder& encoder, const io::SpillPlace& spill,
                     std::vector<std::string>* bad) {
  Triples triples{.encoded = EncodedDataset(spill), .invalid = {}};
  ColumnReader lines(file, "triples", "query, relevant passage and other passage", bad);
  for (std::array<std::string_view, 3> columns; lines.next(columns);) {
    io::leave_if_requested("reading triples");
    add_invalid(lines.text(), lines.text(), lines.number(), triples.invalid);
    encoder.append(columns[0], columns[1], triples.encoded);
    encoder.append(columns[0], columns[2], triples.encoded);
  }
  triples.encoded.finish();
  if (triples.encoded.size() == 0) refuse_nothing(file, "triple", bad);
  return triples;
}

std::optional<CandidateReader::Candidate> CandidateReader::next() {
  std::array<std::string_view, 4> columns;
  if (!reader_.next(columns)) return std::nullopt;
  return Candidate{columns[0], columns[1], columns[2], columns[3]};
}

CandidateList::CandidateList(const std::filesystem::path& file, std::vector<std::string>* bad) : file_(file) {
  CandidateReader reader(file, bad);
  std::map<std::string, std::int32_t> places;
  while (const auto candidate = reader.next()) {
    io::leave_if_requested("reading candidates");
    const auto [query, is_new] =
        places.try_emplace(std::string(candidate->query_id), static_cast<std::int32_t>(queries_.size()));
    if (is_new) queries_.push_back(query->first);
    query_of_.push_back(query->second);
    passages_ += candidate->passage_id;
    passage_begins_.push_back(passages_.size());
    add_invalid(candidate->query, reader.text(), reader.line(), invalid_);
    add_invalid(candidate->passage, reader.text(), reader.line(), invalid_);
  }
  if (query_of_.empty()) refuse_nothing(file, "candidate", bad);
}

std::string_view CandidateList::passage(std::int64_t i) const {
  const std::uint64_t begin = passage_begins_[static_cast<std::size_t>(i)];
  return std::string_view(passages_).substr(begin, passage_begins_[static_cast<std::size_t>(i) + 1] - begin);
}

std::size_t CandidateList::bytes() const {
  return passages_.capacity() + passage_begins_.capacity() * sizeof(std::uint64_t) +
         query_of_.capacity() * sizeof(std::int32_t) + queries_.capacity() * sizeof(std::string);
}

std::vector<std::vector<std::int64_t>> CandidateList::lines() const {
  std::vector<std::vector<std::int64_t>> lines(queries_.size());
  for (std::int64_t i = 0; i < size(); ++i) lines[static_cast<std::size_t>(query_of(i))].push_back(i);
  return lines;
}

std::vector<std::vector<std::int64_t>> CandidateList::ranked(const std::vector<double>& scores) const {
  check(std::ssize(scores) == size(), "candidates: expected {} scores, got {}", size(), scores.size());
  std::vector<std::vector<std::int64_t>> ranked = lines();
  for (std::vector<std::int64_t>& of_query : ranked)
    std::ranges::stable_sort(of_query, std::ranges::greater{},
                             [&](std::int64_t i) { return scores[static_cast<std::size_t>(i)]; });
  return ranked;
}

RepeatedPassages CandidateList::repeated() const {
  RepeatedPassages repeated;
  const std::vector<std::vector<std::int64_t>> all = lines();
  for (std::size_t query = 0; query < all.size(); ++query) {
    std::vector<std::string> passages;
    for (const std::int64_t line : all[query]) passages.emplace_back(passage(line));
    repeated.add(queries_[query], passages);
  }
  return repeated;
}

}  // namespace bertrand::tasks
