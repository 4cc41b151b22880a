// The files of passage ranking as MSMARCO lays them out (Bajaj et al. 2016), and how a query and a passage are encoded.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/encode.h"
#include "bert/tasks/ranking_scores.h"
#include "bert/text/utf8.h"
#include "io/line_source.h"

namespace bertrand::tasks {

struct RankingLengths {
  int sequence = 512;  ///< tokens of query and passage together, at most
  int query = 64;      ///< of [CLS] query [SEP], at most
};

/// [CLS] query [SEP] passage [SEP], each cut at its end: the query to lengths.query tokens with [CLS] and [SEP], the
/// passage to what is left (Nogueira and Cho 2019, dl4marco-bert). Many passages of one query cost one tokenisation of
/// the query.
class RankingEncoder {
 public:
  /// Throws Failure::usage if the lengths leave no room for a piece of each.
  RankingEncoder(const text::Tokenizer& tokenizer, const RankingLengths& lengths);
  void append(std::string_view query, std::string_view passage, EncodedDataset& to);

 private:
  RankingLengths lengths_;
  SpecialTokens special_;
  text::CachingTokenizer caching_;
  std::string query_;
  std::vector<std::int32_t> query_ids_;  // of query_, with [CLS] and [SEP]
};

/// Lines `query TAB relevant passage TAB other passage`. Triple i becomes the examples 2i, which is relevant, and
/// 2i + 1, which is not.
struct Triples {
  EncodedDataset encoded;
  text::InvalidBytes invalid;  ///< that were dropped
};
/// Throws Failure::input with file and line for other columns, for an empty text and for a blank line that is not at
/// the end, or adds what it would say to `bad`; Failure::input for a file without triples; Failure::io if the disk is
/// full.
Triples read_triples(const std::filesystem::path& file, RankingEncoder& encoder, const io::SpillPlace& spill = {},
                     std::vector<std::string>* bad = nullptr);

/// A file of lines whose columns are separated by tabs.
class ColumnReader {
 public:
  /// A file of `what`, with columns of these names, for messages.
  ColumnReader(const std::filesystem::path& file, std::string_view what, std::string_view names,
               std::vector<std::string>* bad)
      : lines_(file, what), names_(names), bad_(bad) {}
  /// Fills `columns` from the next line, valid until the next call; false at the end, where blank lines are passed
  /// over. Throws Failure::input with file and line for another number of columns, a blank one and a blank line between
  /// others; with `bad` such lines are kept there and passed over.
  bool next(std::span<std::string_view> columns);
  std::string_view text() const { return text_; }  ///< of the line
  std::int64_t number() const { return lines_.number(); }

 private:
  void cut(std::span<std::string_view> columns) const;

  io::LineSource lines_;
  const std::string_view names_;
  std::vector<std::string>* const bad_;
  std::string_view text_;
};

/// Lines `query id TAB passage id TAB query TAB passage`, one by one.
class CandidateReader {
 public:
  struct Candidate {
    std::string_view query_id, passage_id, query, passage;
  };
  explicit CandidateReader(const std::filesystem::path& file, std::vector<std::string>* bad = nullptr)
      : reader_(file, "candidates", "query id, passage id, query and passage", bad) {}
  /// The next one, valid until the next call; none at the end. Throws as ColumnReader.
  std::optional<Candidate> next();
  std::string_view text() const { return reader_.text(); }  ///< of the line
  std::int64_t line() const { return reader_.number(); }

 private:
  ColumnReader reader_;
};

/// Which passages a file of candidates has for which query: all that is held of it. About 30 bytes a line.
class CandidateList {
 public:
  /// Reads the file once, so that whatever is wrong in it is known before anything is computed. Throws as
  /// CandidateReader does, or adds what it would say to `bad`; throws for a file without candidates.
  explicit CandidateList(const std::filesystem::path& file, std::vector<std::string>* bad = nullptr);

  std::int64_t size() const { return std::ssize(query_of_); }
  /// The queries' ids, in the order in which they come first.
  const std::vector<std::string>& queries() const { return queries_; }
  /// The place in queries() of the query of line i.
  std::int32_t query_of(std::int64_t i) const { return query_of_[static_cast<std::size_t>(i)]; }
  std::string_view passage(std::int64_t i) const;
  /// The lines of each query, by its place in queries(), the best first: by falling score, and by their order in the
  /// file if scores are equal. `scores`: one for each line.
  std::vector<std::vector<std::int64_t>> ranked(const std::vector<double>& scores) const;
  RepeatedPassages repeated() const;

  const std::filesystem::path& file() const { return file_; }
  const text::InvalidBytes& invalid() const { return invalid_; }
  /// Held in memory.
  std::size_t bytes() const;

 private:
  /// The lines of each query, by its place in queries(), in their order.
  std::vector<std::vector<std::int64_t>> lines() const;

  std::filesystem::path file_;
  std::vector<std::string> queries_;
  std::vector<std::int32_t> query_of_;
  std::string passages_;                             // their ids, one after the other
  std::vector<std::uint64_t> passage_begins_ = {0};  // where each begins, and the end
  text::InvalidBytes invalid_;
};

}  // namespace bertrand::tasks
