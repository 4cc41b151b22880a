// A file of questions as the model reads it: its windows one after the other, and the way from logits back to answers.
#pragma once
#include <functional>
#include <optional>

#include "bert/tasks/encode.h"
#include "bert/tasks/metrics.h"
#include "bert/tasks/squad_answers.h"

namespace bertrand::tasks {

/// What a file of questions is for.
enum class SquadUse {
  training,    ///< each question has one answer, or none if it is impossible
  evaluation,  ///< each has an answer, or says that it is impossible
  prediction   ///< answers are not looked at
};

/// Has the ids of all windows, on the disk if they are many; to answer, also the texts and their pieces, once, in
/// memory. Windows are made again when answers are made. The tokenizer must outlive it.
class SquadData {
 public:
  /// `options` without file and training, which follow from the others. Throws Error(Failure::usage) as
  /// SquadOptions::check, and Error(Failure::input) naming file, question and key: what read_squad and SquadFeatures
  /// throw, no window, and to evaluate on, a question without what the version says of answers. With `bad` what is
  /// wrong with questions is kept there. Paragraphs that are not wanted are as if they were not there.
  SquadData(const std::filesystem::path& file, SquadUse use, const text::Tokenizer& tokenizer, SquadOptions options,
            std::vector<std::string>* bad = nullptr, const SpillPlace& spill = {}, const ParagraphFilter& wanted = {});
  SquadData(const SquadData&) = delete;
  SquadData& operator=(const SquadData&) = delete;

  /// To train on, two targets each: where the answer begins and ends in the window.
  const EncodedDataset& windows() const { return windows_; }

  /// On the host, beside the windows: texts and their pieces.
  std::size_t bytes() const;

  const std::vector<SquadParagraph>& paragraphs() const { return paragraphs_; }
  std::int64_t questions() const { return questions_; }
  /// The answers that the logits [tokens of all windows, start and end] give, in the file's order; `use` is called in
  /// this thread.
  void answer(const Logits& logits, const AnswerOptions& options,
              const std::function<void(const std::string& id, const Answer& answer)>& use) const;

  /// Lines for people.
  std::string warnings() const { return warnings_; }
  std::string remarks() const;

 private:
  void check_truth(const SquadQuestion& question) const;
  void encode(const SquadFeatures& features);
  std::string make_warnings() const;
  std::vector<ScoredWindow> scored(const SquadExample& example, const Logits& logits, std::int64_t first_token,
                                   text::Encoder& encoder) const;

  const SquadUse use_;
  const text::Tokenizer& tokenizer_;
  const SquadOptions options_;
  std::vector<SquadParagraph> paragraphs_;
  std::optional<SquadFeatures> features_;  // refers to the paragraphs
  EncodedDataset windows_;
  std::vector<std::int64_t> first_tokens_;  // [questions]: where the windows of each begin; to answer
  std::int64_t questions_ = 0;
  QuestionCount without_question_, without_text_, impossible_, empty_answers_;
  std::vector<std::string> left_out_;  // what is said of the first questions that are
  std::size_t left_out_count_ = 0;
  std::string warnings_;
};

}  // namespace bertrand::tasks
