// From the logits of a question's windows to its answer: write_predictions of google-research/bert's run_squad.py, ties
// and all, with transformers' rule for a question of which only the null answer is left. If the context says where its
// pieces stand, an answer is the part of the paragraph from its first piece to its last one, as in transformers'
// pipeline, and not what get_final_text of the script finds.
#pragma once
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bert/tasks/squad_features.h"
#include "io/file_replacer.h"

namespace bertrand::tasks {

struct AnswerOptions {
  int n_best_size = 20;
  int max_answer_length = 30;  ///< in pieces
  bool version_2 = false;
  double null_score_diff_threshold = 0;  ///< version 2: "" is the answer if it scores better by more than this
};

/// A window and what the model says of each of its tokens. Logits of padding may follow; they take part in the choice
/// of the n best positions, as in Google's script, and are then passed over.
struct ScoredWindow {
  SquadWindow window;
  std::vector<double> start, end;
};

struct AnswerCandidate {
  std::string text;
  double probability = 0, start_logit = 0, end_logit = 0;
  std::string_view place = {};  ///< `text` in the paragraph; empty if it is the null answer or places are not known
};

struct Answer {
  std::string text;
  std::vector<AnswerCandidate> n_best;  ///< the best first; at least one
  double null_odds = 0;                 ///< version 2: the score of "" less that of the best other answer
};

/// The answer to a question from all of its windows, in order. Candidates are told apart by their places if the context
/// has those of its pieces, else by their texts.
Answer best_answer(const SquadContext& context, std::span<const ScoredWindow> windows, const text::Tokenizer& tokenizer,
                   const AnswerOptions& options);

/// The part of `original` that the pieces `predicted` come from, as get_final_text of the script finds it: "Steve
/// Smith" for ("steve smith", "Steve Smith's"); all of `original` if it does not find any.
std::string final_text(const std::string& predicted, const std::string& original, const text::Tokenizer& tokenizer);

/// The files of the script, filled question by question: <prefix>predictions.json, <prefix>nbest_predictions.json and,
/// of version 2, <prefix>null_odds.json. Their text is ASCII, with four blanks a level, as Python's
/// json.dumps(indent=4) writes it. Without publish() nothing is left of them.
class AnswerFiles {
 public:
  struct Place {
    std::filesystem::path directory;
    std::string prefix = {};
    bool version_2 = false;
  };
  AnswerFiles(io::Files& files, const Place& place);
  void add(const std::string& id, const Answer& answer);
  void publish();
  std::filesystem::path predictions() const { return at("predictions.json"); }

 private:
  /// One object, a key for each question.
  class File {
   public:
    File(io::Files& files, const std::filesystem::path& file) : out_(files, file) {}
    void add(const std::string& id, const std::string& value);
    void publish();

   private:
    io::FileReplacer out_;
    std::string waiting_;  // text to be written
    bool empty_ = true;
  };
  std::filesystem::path at(const char* name) const { return place_.directory / (place_.prefix + name); }

  const Place place_;
  File predictions_, n_best_;
  std::optional<File> null_odds_;
};

}  // namespace bertrand::tasks
