// Files of words with a label each: CoNLL, IOB2 and CoNLL-U have a word a line, other layouts have a sentence a line.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bert/text/utf8.h"

namespace bertrand::tasks {

enum class TokenLayout {
  words,   ///< a word a line; a blank line ends a sentence
  rows,    ///< a sentence a line: its words in one column and their labels in another, each separated by spaces
  objects  ///< a sentence a line: a JSON object with a list of words and one of their labels
};

/// Where the fields stand. Columns have numbers from 0.
struct TokenColumns {
  TokenLayout layout = TokenLayout::words;
  std::size_t word = 0;
  std::optional<std::size_t> label = {};  ///< absent: the last column, if it is not the word's
  std::string label_key = {};             ///< of objects that have several keys of labels; empty: they are refused
};

/// The sentences of a file, one after the other in one row of words. No sentence is empty.
struct TokenFile {
  std::string file;  ///< as the messages name it
  std::vector<std::string> words;
  std::vector<std::string> labels = {};    ///< of the words; empty if the file has none
  std::vector<std::int64_t> lines = {};    ///< of the words, from 1
  std::vector<std::size_t> offsets = {0};  ///< [sentences + 1]: sentence s owns words offsets[s] .. offsets[s + 1]
  text::InvalidBytes invalid = {};         ///< that were dropped

  std::size_t sentences() const { return offsets.size() - 1; }
  /// "file:line" of a word, for messages.
  std::string where(std::size_t word) const;
};

/// How a line of words is cut into columns. All of a file are cut as the first one: what lost a TAB would be another
/// word with another label.
struct LineForm {
  std::size_t columns = 0;
  bool has_tabs = false;
  std::int64_t line = 0;

  /// What is wrong with a line of another form than this one; "" if it has the same.
  std::string difference(const LineForm& other) const;
};

/// A line without what is no UTF-8.
struct WordLine {
  std::string text;
  std::int64_t number = 0;             ///< from 1
  std::vector<std::size_t> gaps = {};  ///< as drop_invalid_utf8() has them

  /// Whether a part of the text has lost bytes.
  bool has_gap(std::string_view part) const;
};
/// What is no UTF-8 is counted in `invalid`.
WordLine word_line(std::string_view line, std::int64_t number, text::InvalidBytes& invalid);

/// Takes the comments out of lines with a word each: those that begin with "# " at the beginning of a sentence. If the
/// first word's line is cut at spaces, so is a word "#", which is no comment if it has as many columns and not the form
/// of CoNLL-U's comments ("# sent_id = 7", "# newdoc", "# newpar").
class WordLines {
 public:
  using Use = std::function<void(const WordLine& line)>;
  explicit WordLines(Use use) : use_(std::move(use)) {}

  /// Hands over the line, unless it is a comment. Lines before the first word's are handed over with it.
  void take(const WordLine& line);

 private:
  void hand_over(const WordLine& line);

  const Use use_;
  std::vector<WordLine> before_;        // the first word's
  std::optional<std::size_t> columns_;  // of a word; 0 if they are cut at TAB
  bool begins_sentence_ = true;
};

/// Reads a file, which may be compressed, sentence by sentence: `use` gets a file that has one. Returns the file
/// without words. At least one sentence comes. A file that has the name of JSON lines is in the layout of objects,
/// whatever `columns` says: the key of the words is "tokens", that of the labels "tags", "ner_tags", "pos_tags" or
/// "labels", of which the first object has one, or that of `columns` too. In other layouts columns are cut at TAB if
/// the first word's line has one, else at runs of spaces; spaces around a cell do not belong to it. In the layout of
/// words a line that begins with "-DOCSTART-" ends a sentence as a blank line does, and comments are as WordLines has
/// them. If the words are not in the first column, lines of CoNLL-U for several words together (1-2) and for empty
/// nodes (2.1) are passed over. A byte order mark, and in words what is no UTF-8, are dropped, and CRLF ends a line as
/// LF does. `needs_label`: for training and evaluation; a file to predict may have labels or not, numbers for labels
/// are none, and one that is not UTF-8 is "". Throws Failure::usage if word and label are one column. Throws
/// Failure::input with file and line for a line of another LineForm than the first, an empty word, an empty label or
/// one with a space in it, a label that is needed or an object that is not UTF-8, and, in the layouts of a sentence a
/// line, for a blank line or another number of labels than of words; also for a file without words. With `bad` such
/// lines are kept there and passed over; some words must be left.
TokenFile walk_sentences(const std::string& path, TokenColumns columns, bool needs_label, std::vector<std::string>* bad,
                         const std::function<void(const TokenFile& sentence)>& use);

/// Whether every word is a whole number, as those of the first column of CoNLL-U.
bool words_are_numbers(const TokenFile& file);

}  // namespace bertrand::tasks
