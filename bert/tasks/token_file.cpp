// The three layouts, line by line.
#include "bert/tasks/token_file.h"

#include <algorithm>
#include <array>

#include "bert/tasks/attempt.h"
#include "bert/tasks/labels.h"
#include "bert/tasks/table_formats.h"
#include "io/error.h"
#include "io/file_names.h"
#include "io/json.h"
#include "io/line_source.h"
#include "io/numbers.h"
#include "io/signals.h"
#include "io/split.h"

namespace bertrand::tasks {
namespace {

using Cells = std::vector<std::string_view>;

Cells cut_at_spaces(std::string_view line) {
  Cells cells;
  for (std::size_t begin = line.find_first_not_of(' '); begin != std::string_view::npos;) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    cells.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(' ', end);
  }
  return cells;
}

Cells cut_at_tabs(std::string_view line) {
  Cells cells;
  for (const std::string_view cell : io::split(line, '\t')) cells.push_back(trimmed_cell(cell));
  return cells;
}

/// CoNLL-U has ten columns, of which the first is the word's number. There are also lines for several words together
/// (1-2) and for words that the text lacks (2.1).
bool names_no_word(const Cells& cells) {
  constexpr std::size_t kColumns = 10;
  const std::string_view number = cells[0];
  const std::size_t mark = number.find_first_of("-.");
  return cells.size() == kColumns && mark != std::string_view::npos && io::whole_number(number.substr(0, mark)) &&
         io::whole_number(number.substr(mark + 1));
}

bool is_blank_line(std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; }

constexpr std::string_view kDocument = "-DOCSTART-";

/// Where data sets of Hugging Face have labels of words.
constexpr std::array<const char*, 4> kLabelKeys = {"tags", "ner_tags", "pos_tags", "labels"};

/// Whether a line that begins with "# " is a comment, where a word's line is cut at spaces into as many `columns`: it
/// has another number of them, or the form of CoNLL-U's comments, "# sent_id = 7" and "# newdoc".
bool is_comment(const Cells& cells, std::size_t columns) {
  if (cells.size() != columns) return true;
  return (cells.size() > 2 && cells[2] == "=") || (cells.size() > 1 && (cells[1] == "newdoc" || cells[1] == "newpar"));
}

class Parser {
 public:
  using Use = std::function<void(const TokenFile& sentence)>;
  Parser(const std::string& file, const TokenColumns& columns, bool needs_label, const Use& use)
      : sentence_{.file = file, .words = {}}, columns_(columns), needs_label_(needs_label), use_(use) {
    if (columns.label == columns.word)
      fail(Failure::usage, "--label-column: expected another column than --text-column, got {} for both", columns.word);
  }

  /// Takes a line, which is no comment.
  void take(const WordLine& line) {
    line_ = line.number;
    if (columns_.layout == TokenLayout::words) return add_word(line);
    if (columns_.layout == TokenLayout::objects) {
      if (!is_blank_line(line.text)) add_object(line.text);
      return;
    }
    if (is_blank_line(line.text)) {
      if (blank_line_ == 0) blank_line_ = line_;  // those at the end do not count
      return;
    }
    if (const std::int64_t blank = std::exchange(blank_line_, 0); blank != 0)
      fail(Failure::input, "{}:{}: words: expected a sentence, got an empty line", sentence_.file, blank);
    add_row(line);
  }
  void finish() {
    if (sentences_ == 0 && 2 * spaced_words_ > std::ssize(sentence_.words))
      fail(Failure::input,
           "{}: words: expected one in each line and blank lines between sentences, got no blank line and texts as {}; "
           "hint: is it a table? --task custom; for words and labels in cells --layout rows",
           sentence_.file, io::shown(io::Json(first_spaced_)));
    end_sentence();
    if (empty()) fail(Failure::input, "{}:1: words: expected at least one, got none", sentence_.file);
  }
  /// Whether no word has come.
  bool empty() const { return !some_; }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> message, Args&&... args) const {
    fail(Failure::input, "{}:{}: {}", sentence_.file, line_, fmt::format(message, std::forward<Args>(args)...));
  }

  void end_sentence() {
    if (sentence_.words.empty()) return;
    ++sentences_;
    sentence_.offsets = {0, sentence_.words.size()};
    use_(sentence_);
    sentence_.words.clear();
    sentence_.labels.clear();
    sentence_.lines.clear();
  }

  void add_word(const WordLine& line) {
    if (is_blank_line(line.text)) return end_sentence();
    const bool has_tabs = line.text.find('\t') != std::string::npos;
    const Cells cells = has_tabs ? cut_at_tabs(line.text) : cut_at_spaces(line.text);
    if (cells[0] == kDocument) return end_sentence();
    if (columns_.word != 0 && names_no_word(cells)) return;
    check_form({.columns = cells.size(), .has_tabs = has_tabs, .line = line_});
    const std::string_view word = cells[columns_.word];
    if (word.empty()) refuse("word: expected one in column {}, got none", columns_.word);
    if (word.find(' ') != std::string_view::npos && spaced_words_++ == 0) first_spaced_ = word;
    if (!label_) return add(word, std::nullopt);
    const std::string_view label = cells[*label_];
    if (is_invalid(line, label)) return add(word, "");
    if (label.empty()) refuse("label: expected one in column {}, got none", *label_);
    if (label.find(' ') != std::string_view::npos)
      refuse("label: expected one without spaces, got \"{}\"; hint: TAB alone separates the columns of a line with TAB",
             label);
    add(word, label);
  }

  void add_row(const WordLine& line) {
    const Cells cells = cut_at_tabs(line.text);
    check_form({.columns = cells.size(), .has_tabs = true, .line = line_});
    const Cells words = cut_at_spaces(cells[columns_.word]);
    if (words.empty()) refuse("words: expected at least one in column {}, got none", columns_.word);
    std::optional<Cells> labels;
    if (label_) labels = cut_at_spaces(cells[*label_]);
    if (labels)
      for (std::string_view& label : *labels)
        if (is_invalid(line, label)) label = "";
    add_sentence(words, labels);
  }

  void add_object(std::string_view line) {
    const io::JsonSource source{.name = fmt::format("{}:{}", sentence_.file, line_), .failure = Failure::input};
    const io::Json json = parse_object(line, source.name);
    io::JsonReader object(json, source);
    const bool has_words = object.find("words") && !object.find("tokens");  // as predict calls them
    const Cells words = texts(object, has_words ? "words" : "tokens");
    if (words.empty()) refuse("tokens: expected at least one, got none");
    if (!label_key_) label_key_ = find_label_key(object);
    add_sentence(words, label_key_->empty() ? std::nullopt : std::optional(texts(object, *label_key_)));
  }

  /// "" if it is a file to predict whose labels are none, or not to be understood.
  std::string find_label_key(io::JsonReader& object) const {
    std::vector<std::string> found;
    for (const char* const key : kLabelKeys)
      if (object.find(key)) found.emplace_back(key);
    if (std::ranges::count(found, columns_.label_key) > 0) found = {columns_.label_key};
    if (!needs_label_ && (found.size() != 1 || has_numbers(object, found[0]))) return "";
    if (found.empty()) refuse("labels: expected one of {}, got none", fmt::join(kLabelKeys, ", "));
    if (found.size() > 1)
      refuse("labels: expected one of {}, got {} and {}; hint: jq -c 'del(.{})' FILE leaves one out",
             fmt::join(kLabelKeys, ", "), found[0], found[1], found[1]);
    return found[0];
  }

  static bool has_numbers(io::JsonReader& object, const std::string& key) {
    return std::ranges::any_of(object.list(key), [](const io::Json& item) { return item.is_number(); });
  }

  /// The list of this key, which lives as long as the object.
  Cells texts(io::JsonReader& object, const std::string& key) const {
    Cells texts;
    for (const io::Json& item : object.list(key)) {
      if (!item.is_string())
        refuse("{}: expected strings, got {}{}", key, io::shown(item),
               item.is_number() && key != "tokens" && key != "words"
                   ? "; hint: write the names of the labels in place of numbers"
                   : "");
      texts.push_back(item.get_ref<const std::string&>());
      if (texts.back().empty()) refuse("{}: expected some text in each, got an empty one", key);
    }
    return texts;
  }

  void add_sentence(const Cells& words, const std::optional<Cells>& labels) {
    if (labels && labels->size() != words.size())
      refuse("labels: expected {}, one for each word, got {}", words.size(), labels->size());
    for (std::size_t i = 0; i < words.size(); ++i) add(words[i], labels ? std::optional((*labels)[i]) : std::nullopt);
    end_sentence();
  }

  void add(std::string_view word, std::optional<std::string_view> label) {
    sentence_.words.emplace_back(word);
    sentence_.lines.push_back(line_);
    if (label) sentence_.labels.emplace_back(*label);
    some_ = true;
  }

  /// Whether a label has lost bytes and is none; it is refused if it is needed.
  bool is_invalid(const WordLine& line, std::string_view label) const {
    const bool is = line.has_gap(label);
    if (is && needs_label_) refuse_invalid_label(fmt::format("{}:{}", sentence_.file, line_));
    return is;
  }

  /// All lines have the form of the first that is right.
  void check_form(const LineForm& form) {
    if (form_.columns == 0) {
      find_columns(form.columns);
      form_ = form;
    }
    if (const std::string difference = form_.difference(form); !difference.empty()) refuse("{}", difference);
  }

  void find_columns(std::size_t width) {
    if (columns_.word >= width)
      refuse("columns: expected at least {} for --text-column {}, got {}", columns_.word + 1, columns_.word, width);
    const std::size_t label = columns_.label.value_or(width - 1);
    if (label < width && label != columns_.word) label_ = label;
    else if (needs_label_ && columns_.label)
      refuse("columns: expected at least {} for --label-column {}, got {}", label + 1, label, width);
    else if (needs_label_ && width > 1)
      refuse("columns: expected the label in the last, got the word there, in column {}; hint: --label-column", label);
    else if (needs_label_) refuse("columns: expected a word and a label, got {} column", width);
  }

  TokenFile sentence_;  // that is being read
  const TokenColumns columns_;
  const bool needs_label_;
  const Use& use_;
  bool some_ = false;                          // words have come
  std::optional<std::size_t> label_;           // its column
  std::optional<std::string> label_key_ = {};  // of objects; none before the first
  LineForm form_;                              // without columns before the first line with any
  std::int64_t line_ = 0;
  std::int64_t sentences_ = 0;     // that ended
  std::int64_t spaced_words_ = 0;  // with spaces in them: the texts of a table, if no line is blank
  std::string first_spaced_;
  std::int64_t blank_line_ = 0;  // of rows: the first of those before this line
};

/// A table of words, as Kaggle's: its lines would be words with commas in them.
void refuse_csv(std::string_view first_line, const std::string& file) {
  const std::size_t comma = first_line.find(',');
  const bool parts_cells = comma != std::string_view::npos && comma > 0 && first_line[comma - 1] != ' ' &&
                           first_line.substr(comma + 1, 1) != " " && first_line.find('\t') == std::string_view::npos;
  if (parts_cells && io::plain_extension(file) == ".csv")
    fail(Failure::input,
         "{}:1: columns: expected TAB or spaces between word and label, got commas; hint: write a word TAB its label a "
         "line and a blank line after each sentence",
         file);
}

}  // namespace

std::string LineForm::difference(const LineForm& other) const {
  if (other.columns != columns)
    return fmt::format("columns: expected {} as in line {}, got {}", columns, line, other.columns);
  const auto separator = [](const LineForm& form) { return form.has_tabs ? "TAB" : "spaces"; };
  if (other.has_tabs != has_tabs)
    return fmt::format("columns: expected {} between them as in line {}, got {}", separator(*this), line,
                       separator(other));
  return "";
}

bool WordLine::has_gap(std::string_view part) const {
  const auto begin = static_cast<std::size_t>(part.data() - text.data());
  return text::has_gap(gaps, begin, begin + part.size());
}

WordLine word_line(std::string_view line, std::int64_t number, text::InvalidBytes& invalid) {
  WordLine valid{.text = std::string(line), .number = number};
  invalid.add(text::drop_invalid_utf8(line, valid.text, &valid.gaps), static_cast<std::uint64_t>(number));
  return valid;
}

void WordLines::take(const WordLine& line) {
  const std::string& text = line.text;
  const bool is_word = !is_blank_line(text) && !text.starts_with("# ") && !text.starts_with(kDocument);
  if (!columns_ && !is_word) {
    before_.push_back(line);
    return;
  }
  if (!columns_) {
    columns_ = text.find('\t') != std::string::npos ? 0 : cut_at_spaces(text).size();
    for (const WordLine& earlier : std::exchange(before_, {})) hand_over(earlier);
  }
  hand_over(line);
}

void WordLines::hand_over(const WordLine& line) {
  if (begins_sentence_ && line.text.starts_with("# ") && is_comment(cut_at_spaces(line.text), *columns_)) return;
  begins_sentence_ = is_blank_line(line.text) || line.text.starts_with(kDocument);
  use_(line);
}

std::string TokenFile::where(std::size_t word) const { return fmt::format("{}:{}", file, lines[word]); }

TokenFile walk_sentences(const std::string& path, TokenColumns columns, bool needs_label, std::vector<std::string>* bad,
                         const std::function<void(const TokenFile& sentence)>& use) {
  if (io::is_json_lines(path)) columns.layout = TokenLayout::objects;
  TokenFile file{.file = path, .words = {}};
  const std::size_t bad_before = bad ? bad->size() : 0;
  Parser parser(path, columns, needs_label, use);
  io::LineSource lines(path, "words");
  const auto take = [&](const WordLine& line) { attempt(bad, [&] { parser.take(line); }); };
  WordLines words(take);
  for (std::string_view bytes; lines.next(bytes);) {
    io::leave_if_requested("reading words");
    const bool is_object = columns.layout == TokenLayout::objects;  // what is no UTF-8 is refused there
    const std::int64_t number = lines.number();
    const WordLine line =
        is_object ? WordLine{.text = std::string(bytes), .number = number} : word_line(bytes, number, file.invalid);
    if (is_object && number == 1) refuse_list_of_rows(line.text, path);
    if (columns.layout == TokenLayout::words && number == 1) refuse_csv(line.text, path);
    if (columns.layout == TokenLayout::words) words.take(line);
    else take(line);
  }
  if (parser.empty() && bad && bad->size() > bad_before) throw OnlyBadRows(*bad, bad_before);
  parser.finish();
  return file;
}

bool words_are_numbers(const TokenFile& file) {
  return std::ranges::all_of(file.words, [](const std::string& word) { return io::whole_number(word).has_value(); });
}

}  // namespace bertrand::tasks
