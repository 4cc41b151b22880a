// A file of questions as the model reads it: its windows one after the other, and the way from logits back to answers.
#pragma once
#include <functional>

#include "bert/tasks/encode.h"
#include "bert/tasks/metrics.h"
#include "bert/tasks/paragraph_list.h"
#include "bert/tasks/squad_answers.h"

namespace bertrand::tasks {

/// What a file of questions is for.
enum class SquadUse {
  training,    ///< each question has one answer, or none if it is impossible
  evaluation,  ///< each has an answer, or says that it is impossible
  prediction   ///< answers are not looked at
};

/// Has the ids of all windows and, to answer, the texts, on the disk if they are many. Windows are made again when
/// answers are made. The tokenizer must outlive it.
class SquadData {
 public:
  /// `options` without file and training, which follow from the others. Throws Error(Failure::usage) as
  /// SquadOptions::check, and Error(Failure::input) naming file, question and key: what read_squad and SquadFeatures
  /// throw, no window, and to evaluate on, a question without what the version says of answers. With `bad` what is
  /// wrong with questions is kept there. Paragraphs that are not wanted are as if they were not there.
  SquadData(const std::filesystem::path& file, SquadUse use, const text::Tokenizer& tokenizer, SquadOptions options,
            std::vector<std::string>* bad = nullptr, const io::SpillPlace& spill = {},
            const ParagraphFilter& wanted = {});
  SquadData(const SquadData&) = delete;
  SquadData& operator=(const SquadData&) = delete;

  /// To train on, two targets each: where the answer begins and ends in the window.
  const EncodedDataset& windows() const { return windows_; }

  /// On the host, beside the windows: texts.
  std::size_t bytes() const { return paragraphs_.held_bytes() + first_tokens_.held_bytes(); }

  std::int64_t questions() const { return questions_; }
  /// Whether some question of a file to evaluate on has an answer, and whether some has none.
  bool has_answers() const { return some_answer_; }
  bool has_unanswered() const { return some_without_; }
  using AnswerUse = std::function<void(const SquadParagraph&, const SquadQuestion&, const Answer&)>;
  /// The answers that the logits [tokens of all windows, start and end] give, in the file's order; `use` is called in
  /// this thread.
  void answer(const Logits& logits, const AnswerOptions& options, const AnswerUse& use) const;

  /// Lines for people.
  std::string warnings() const { return warnings_; }
  std::string remarks() const;

 private:
  void check_truth(const SquadQuestion& question) const;
  void keep(const SquadParagraph& paragraph, std::vector<std::string>* bad);
  void encode(const SquadFeatures& features);
  std::string make_warnings() const;

  const SquadUse use_;
  const text::Tokenizer& tokenizer_;
  const SquadOptions options_;
  const io::SpillPlace spill_;
  ParagraphList paragraphs_;  // to answer
  EncodedDataset windows_;
  io::Spillable<std::int64_t> first_tokens_;  // [questions]: where the windows of each begin; to answer
  bool some_answer_ = false, some_without_ = false;
  std::int64_t questions_ = 0;
  QuestionCount without_question_, without_text_, impossible_, empty_answers_;
  std::vector<std::string> left_out_;  // what is said of the first questions that are
  std::size_t left_out_count_ = 0;
  std::string warnings_;
};

}  // namespace bertrand::tasks
