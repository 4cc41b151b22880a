#include "bert/tasks/score_files.h"

#include <algorithm>
#include <set>

#include "bert/tasks/labels.h"
#include "bert/tasks/ranking_scores.h"
#include "bert/tasks/token_file.h"
#include "bert/tasks/word_scores.h"
#include "bert/text/utf8.h"
#include "io/error.h"
#include "io/files.h"
#include "io/input_files.h"
#include "io/json.h"
#include "io/line_source.h"
#include "io/numbers.h"
#include "io/table.h"

namespace bertrand::tasks {
namespace {

namespace fs = std::filesystem;

/// A JSON object with a value for each question's id.
io::Json read_object(const fs::path& file) {
  io::refuse_directory(file, "predictions", Failure::input);
  io::Json object = io::parse_json(io::MappedFile(file).text(), {.name = file.string(), .failure = Failure::input});
  if (!object.is_object()) fail(Failure::input, "{}: expected an object, got {}", file.string(), io::shown(object));
  return object;
}

[[noreturn]] void refuse(const fs::path& file, const std::string& id, const char* expected, const io::Json& got) {
  fail(Failure::input, "{}: {}: expected {}, got {}", file.string(), io::printable(id), expected, io::shown(got));
}

/// A file of columns, line by line.
class Lines {
 public:
  explicit Lines(const fs::path& file) : source_(file, "lines") {}

  /// The columns of the next line, none of a blank one; false at the end.
  bool next(std::vector<std::string>& columns) {
    std::string_view line;
    if (!next(line)) return false;
    const std::vector<std::string_view> parts = columns_of(line);
    columns.assign(parts.begin(), parts.end());
    return true;
  }
  bool next(std::string_view& line) { return source_.next(line); }
  static std::vector<std::string_view> columns_of(std::string_view line) {
    std::vector<std::string_view> columns;
    const std::string_view separators = line.find('\t') != std::string::npos ? "\t\r" : " \r";
    for (std::size_t at = 0; (at = line.find_first_not_of(separators, at)) != std::string::npos;) {
      const std::size_t end = std::min(line.find_first_of(separators, at), line.size());
      const std::string_view cell = trimmed_cell(line.substr(at, end - at));
      if (!cell.empty()) columns.push_back(cell);
      at = end;
    }
    return columns;
  }

  std::int64_t number() const { return source_.number(); }
  const std::string& name() const { return source_.name(); }
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> message, Args&&... args) const {
    fail(Failure::input, "{}: {}", source_.where(), fmt::format(message, std::forward<Args>(args)...));
  }
  void require(std::size_t least, std::size_t most, std::size_t columns, const char* what) const {
    if (columns < least || columns > most) refuse("columns: expected {}, got {} of them", what, columns);
  }

 private:
  io::LineSource source_;
};

std::int64_t whole_number(const std::string& text, const Lines& lines, const char* what) {
  const auto value = io::number_in<std::int64_t>(text);
  if (!value) lines.refuse("{}: expected a whole number, got {}", what, io::shown(io::Json(text)));
  return *value;
}

/// The passages of one query with their ranks, as far as they have been read. At a rank that the file leaves out stands
/// a passage that is not relevant, as in MSMARCO's own script.
class RankedQuery {
 public:
  RankedQuery(const fs::path& file, const Qrels& qrels) : lines_(file), counter_(qrels) {}

  FileScores score() {
    for (std::vector<std::string> columns; lines_.next(columns);) {
      if (columns.empty()) continue;
      lines_.require(3, 3, columns.size(), "query id, passage id and rank");
      if (columns[0] != query_) begin(columns[0]);
      const std::int64_t rank = whole_number(columns[2], lines_, "rank");
      if (rank < 1) lines_.refuse("rank: expected at least 1, got {}", rank);
      ranked_.emplace_back(rank, columns[1]);
    }
    finish();
    return result();
  }

 private:
  void begin(const std::string& query) {
    finish();
    if (!seen_.insert(query).second)
      lines_.refuse("query {}: expected its lines together, got more of them here", query);
    query_ = query;
  }

  void finish() {
    if (ranked_.empty()) return;
    std::ranges::sort(ranked_, {}, &std::pair<std::int64_t, std::string>::first);
    const auto twice = std::ranges::adjacent_find(ranked_, {}, &std::pair<std::int64_t, std::string>::first);
    if (twice != ranked_.end())
      fail(Failure::input, "{}: query {}: rank: expected each one once, got {} twice", lines_.name(), query_,
           twice->first);
    std::vector<std::string> passages, places;
    for (const auto& [rank, passage] : ranked_) {
      passages.push_back(passage);
      const auto before = static_cast<std::size_t>(rank - 1);
      if (rank > kMostPlaces && before > places.size())
        fail(Failure::input, "{}: query {}: rank: expected at most {}, or the one after the one before, got {}",
             lines_.name(), query_, kMostPlaces, rank);
      places.resize(before);
      places.push_back(passage);
    }
    repeated_.add(query_, passages);
    counter_.add(query_, places);
    ranked_.clear();
  }

  FileScores result() const {
    if (seen_.empty()) fail(Failure::input, "{}: expected at least one query, got none", lines_.name());
    FileScores scores{.figures = counter_.means(), .warnings = counter_.warnings()};
    if (const std::string warning = repeated_.warning(); !warning.empty())
      scores.warnings.push_back(fmt::format("{}: {}", lines_.name(), warning));
    scores.figures["queries"] = static_cast<double>(counter_.queries());
    return scores;
  }

  static constexpr std::int64_t kMostPlaces = 1000;  // of that script

  Lines lines_;
  std::string query_;
  std::vector<std::pair<std::int64_t, std::string>> ranked_;
  std::set<std::string> seen_;
  RepeatedPassages repeated_;
  RankingCounter counter_;
};

}  // namespace

Answers read_answers(const fs::path& file) {
  Answers answers;
  io::Json object = read_object(file);
  for (const auto& [id, text] : object.items()) {
    if (!text.is_string()) refuse(file, id, "a text", text);
    answers[id] = std::move(text.get_ref<std::string&>());
  }
  return answers;
}

NullOdds read_null_odds(const fs::path& file) {
  NullOdds odds;
  const io::Json object = read_object(file);
  for (const auto& [id, number] : object.items()) {
    if (!number.is_number()) refuse(file, id, "a number", number);
    odds.emplace_back(id, number.get<double>());
  }
  return odds;
}

namespace {

/// The true and the predicted tags of a file, sentence by sentence.
class TaggedSentences {
 public:
  TaggedSentences(const Lines& lines, WordScores& scores) : lines_(lines), scores_(scores) {}

  void take(const WordLine& line, const std::vector<std::string_view>& columns, const LineForm& form) {
    if (columns.empty() || columns[0] == "-DOCSTART-") return end_sentence();
    if (std::exchange(is_first_, false)) {
      form_ = form;
      if (columns[0] == "sentence" && std::ranges::count(columns, "prediction") > 0) return read_header(columns);
      if ((columns[0] == "label" || columns[0] == "entity") && columns.back() == "support")
        lines_.refuse("columns: expected word, true tag and predicted tag, got those of eval_report.tsv");
      if (columns.size() > 1 && columns[0] == "id" && columns[1] == "prediction")
        lines_.refuse(
            "columns: expected word, true tag and predicted tag, got those of predictions.tsv of texts; hint: evaluate "
            "classes, or evaluate scores for numbers");
      lines_.require(3, 1024, columns.size(), "word, true tag and predicted tag");
    }
    if (const std::string difference = form_.difference(form); !difference.empty()) lines_.refuse("{}", difference);
    const std::size_t width = columns.size();
    if (has_header_ && std::exchange(sentence_, std::string(columns[0])) != columns[0]) end_sentence();
    truth_.push_back(tag(line, columns[has_header_ ? label_ : width - 2]));
    predicted_.push_back(tag(line, columns[has_header_ ? prediction_ : width - 1]));
  }
  /// After the last line. Returns how many words there were.
  std::size_t finish() {
    end_sentence();
    return words_;
  }

 private:
  std::string tag(const WordLine& line, std::string_view cell) const {
    if (line.has_gap(cell)) refuse_invalid_label(fmt::format("{}:{}", lines_.name(), line.number));
    return std::string(cell);
  }
  /// Of the predictions.tsv that finetune writes.
  void read_header(const std::vector<std::string_view>& columns) {
    const auto place = [&](const char* name) {
      const auto found = std::ranges::find(columns, name);
      if (found == columns.end()) lines_.refuse("columns: expected one named {}, got none", name);
      return static_cast<std::size_t>(found - columns.begin());
    };
    has_header_ = true;
    label_ = place("label"), prediction_ = place("prediction");
  }
  void end_sentence() {
    if (!truth_.empty()) scores_.add(truth_, predicted_);
    words_ += truth_.size();
    truth_.clear(), predicted_.clear();
  }

  const Lines& lines_;
  WordScores& scores_;
  std::vector<std::string> truth_, predicted_;
  std::size_t words_ = 0;
  bool is_first_ = true, has_header_ = false;
  LineForm form_;                           // of the first line
  std::size_t label_ = 0, prediction_ = 0;  // with a header
  std::string sentence_;
};

}  // namespace

FileScores score_tokens_file(const fs::path& file, TokenTask task) {
  text::InvalidBytes invalid;
  Lines lines(file);
  WordScores scores(task);
  TaggedSentences sentences(lines, scores);
  WordLines words([&](const WordLine& line) {
    const std::string_view text = line.text, cells = text.substr(0, text.find_last_not_of(" \r") + 1);
    const bool is_blank = cells.find_first_not_of("\t ") == std::string_view::npos;
    if (!is_blank && (cells.find("\t\t") != std::string_view::npos || cells.ends_with('\t')))
      fail(Failure::input, "{}:{}: columns: expected a word or a tag in each, got an empty one", file.string(),
           line.number);
    const std::vector<std::string_view> columns = Lines::columns_of(text);
    const bool has_tabs = cells.find('\t') != std::string_view::npos;
    sentences.take(line, columns, {.columns = columns.size(), .has_tabs = has_tabs, .line = line.number});
  });
  for (std::string_view line; lines.next(line);) words.take(word_line(line, lines.number(), invalid));
  if (sentences.finish() == 0) fail(Failure::input, "{}: expected at least one word, got none", file.string());
  FileScores result = scores.scores();
  if (invalid.count > 0) result.warnings.insert(result.warnings.begin(), invalid.message(file.string()));
  return result;
}

Qrels read_qrels(const fs::path& file) {
  Qrels relevant;
  Lines lines(file);
  for (std::vector<std::string> columns; lines.next(columns);) {
    if (columns.empty()) continue;
    lines.require(4, 4, columns.size(), "query id, 0, passage id and relevance");
    if (whole_number(columns[3], lines, "relevance") > 0) relevant[columns[0]].insert(columns[2]);
  }
  return relevant;
}

FileScores score_ranking_files(const fs::path& qrels, const fs::path& run) {
  const Qrels relevant = read_qrels(qrels);
  return RankedQuery(run, relevant).score();
}

}  // namespace bertrand::tasks
