// Questions and contexts as the encoder's input, in windows if a context is too long: the features of
// google-research/bert's run_squad.py, record by record (read_squad_examples, convert_examples_to_features).
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/squad_file.h"
#include "bert/text/tokenizer.h"

namespace bertrand::tasks {

struct SquadOptions {
  int max_seq_length = 384;
  int doc_stride = 128;  ///< from the beginning of one window to that of the next, as Google's; not the overlap
  int max_query_length = 64;
  bool training = false;   ///< answers are needed and become positions
  bool version_2 = false;  ///< a question may have no answer
  bool places = false;     ///< contexts say where their pieces stand
  int threads = 1;
  std::string file = "data";  ///< where the questions are from, for messages

  /// Throws Error(Failure::usage) if a window has no room for a piece of the context, or the next
  /// window would be the same.
  void check() const;
};

/// A part of a context with its question: [CLS] question [SEP] context [SEP].
struct SquadWindow {
  std::vector<std::int32_t> token_ids;  ///< not padded
  std::int32_t context_begin = 0;       ///< where the context's pieces begin: all before it are of type 0
  std::int32_t number = 0;              ///< among the windows of its question, from 0
  std::int32_t first_piece = 0;         ///< of the context, which stands at context_begin
  bool cut_question = false;            ///< whether the question had more pieces than it may
  std::vector<bool> is_best_window;     ///< of each piece of the context: whether it has most context here
  std::int32_t start = 0, end = 0;      ///< positions of the answer, both 0 if it is not (whole) in here; when training

  std::int32_t context_pieces() const { return static_cast<std::int32_t>(is_best_window.size()); }
};

/// A context cut at white space into words, and the words into pieces.
struct SquadContext {
  std::vector<std::string_view> words;      ///< of the paragraph's text
  std::vector<std::int32_t> pieces;         ///< of all words
  std::vector<std::int32_t> word_of_piece;  ///< [pieces]
  std::vector<std::int32_t> first_piece;    ///< [words]: of each word
  /// [pieces], if SquadOptions::places asks for them: the part of the paragraph's text that each piece stands for.
  std::vector<std::string_view> places = {};
};

/// Questions of one kind: how many, and the first one.
struct QuestionCount {
  std::size_t count = 0;
  std::string first;
  void add(const std::string& id) {
    if (count++ == 0) first = id;
  }
};
/// What is said of the examples whose answer is empty, after "questions".
inline constexpr std::string_view kEmptyAnswers = "whose answer has no word, kept all the same";

/// A question that is used: in training those whose answer stands where the file says.
struct SquadExample {
  const SquadQuestion* question = nullptr;
  std::size_t paragraph = 0;
  std::int32_t first_word = 0, last_word = 0;  ///< of the answer, when training
  bool is_impossible = false;
  bool answer_is_empty = false;  ///< it has no word, when training
};

/// The contexts are tokenised at once, by all threads; the windows of a question are made when they are asked for. The
/// paragraphs and the tokenizer must outlive it.
class SquadFeatures {
 public:
  /// Throws Error(Failure::input), naming file and question, when training: not exactly one answer, an answer that
  /// begins or ends beyond its context, no is_impossible in version 2. With `bad` such questions are kept there and
  /// passed over.
  SquadFeatures(const std::vector<SquadParagraph>& paragraphs, const text::Tokenizer& tokenizer,
                const SquadOptions& options, std::vector<std::string>* bad = nullptr);

  const std::vector<SquadExample>& examples() const { return examples_; }
  const SquadParagraph& paragraph(const SquadExample& example) const { return paragraphs_[example.paragraph]; }
  const SquadContext& context(const SquadExample& example) const { return contexts_[example.paragraph]; }
  /// "question …: Could not find answer: '…' vs. '…'" of each question that was left out.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// Appends the windows of an example, in order. From any thread, each with a tokenizer of its own.
  void windows(const SquadExample& example, text::CachingTokenizer& caching, std::vector<SquadWindow>& out) const;
  /// Makes the windows of all examples by all threads. `use` gets those of one example at a time, in order, in this
  /// thread.
  void for_windows(const std::function<void(const SquadExample&, std::span<const SquadWindow>)>& use) const;

 private:
  void add_example(const SquadQuestion& question, std::size_t paragraph);
  bool find_answer(const SquadQuestion& question, std::size_t paragraph, SquadExample& example);
  struct Pieces {
    std::int32_t first = 0, last = 0;
  };
  Pieces answer_pieces(const SquadExample& example, text::CachingTokenizer& caching) const;

  const std::vector<SquadParagraph>& paragraphs_;
  const text::Tokenizer& tokenizer_;
  const SquadOptions options_;
  std::vector<SquadContext> contexts_;
  std::vector<SquadExample> examples_;
  std::vector<std::string> warnings_;
};

using ParagraphUse = std::function<void(SquadParagraph&& paragraph)>;
/// The features of the paragraphs that `walk` hands over, in parts of a few megabytes, in order, none of which is held:
/// so many paragraphs that all threads have work. Throws as SquadFeatures.
void walk_features(const std::function<void(const ParagraphUse& add)>& walk, const text::Tokenizer& tokenizer,
                   const SquadOptions& options, const std::function<void(const SquadFeatures&)>& use,
                   std::vector<std::string>* bad = nullptr);

}  // namespace bertrand::tasks
