// Opens a model directory to predict with.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bert/directory/model_directory.h"
#include "bert/inference/predictor.h"
#include "bert/tasks/squad_answers.h"
#include "bert/tasks/task.h"
#include "io/choices.h"

namespace bertrand::inference {

/// What a network has on top of its encoder, and so what it can be asked.
enum class Head {
  classify,   ///< one of n labels, any of n labels, or a number, for a text or a pair of texts
  choose,     ///< which of several texts goes with a text
  tokens,     ///< a label for each word
  answer,     ///< the part of a context that answers a question
  fill_mask,  ///< the words that may stand for [MASK]
  embed       ///< none: the text as a vector
};
/// As --task has them.
const io::Choices<Head>& heads();

/// The head that config.json's architectures name. Throws Error(Failure::model) listing the known ones if they name
/// none of them; `directory` stands for the model in messages.
Head head_of(const bert::Config& config, const std::filesystem::path& directory);

/// What a classifier with so many labels says of them: as config.json's problem_type has it; without one, a probability
/// if there is one label, else one of them. Throws Error(Failure::model) naming the file of `model` for a type that is
/// none, and for a choice among one label, as transformers does.
tasks::Kind kind_of_classifier(const bert::Config& config, std::size_t labels, const std::filesystem::path& model);

enum class Pooling {
  mean,   ///< of the rows of all tokens, [CLS] and [SEP] among them, as sentence-transformers
  cls,    ///< the row of [CLS]
  pooler  ///< the output of the pooler, as in pre-training
};

/// As --pooling has them; "auto" is none.
const io::Choices<std::optional<Pooling>>& poolings();

struct Options {
  int max_seq_length = 0;          ///< tokens of a sequence; 0: as completed() has it
  int top_k = 5;                   ///< words for a mask, candidates for an answer
  std::optional<Pooling> pooling;  ///< of embeddings; none: as completed() has it
  bool normalize = false;          ///< embeddings: divided by their Euclidean length
  std::optional<int> overlap;      ///< tokens: pieces that windows of a long text share; none: a quarter of a window
  /// Of a context; max_seq_length is the one above, and no tokens of a question are as completed() has it.
  tasks::SquadOptions windows{.max_query_length = 0};
  tasks::AnswerOptions answers;  ///< with version_2 a question may have no answer; n_best_size is at least top_k
};

/// `options` with what was not given. Tokens are as many as the model has positions, but 384 at most for answers, and
/// those of a question 64, or half of a window that is too short for them. For embeddings the files of
/// sentence-transformers come before that: without a pooling, theirs and their normalization; without those, the mean.
/// Throws Error(Failure::usage) if the model has fewer positions than tokens are wanted,
/// Error(Failure::model) if it has none to read a text with, or if those files want what is not computed here.
Options completed(Options options, const bert::Config& config, Head head, const std::filesystem::path& directory);

/// Where a model comes from and where it computes.
struct Source {
  std::filesystem::path directory;  ///< or a checkpoint
  bert::TokenizerFlags tokenizer;
  Backend& backend;
  DType dtype = DType::f32;
  bool strict = false;  ///< every tensor of the files must fit
};

/// Loads the model. Throws Error(Failure::model) if config.json says that it was fine-tuned for another head, and
/// naming the file and the tensors if its weights lack the head, and Error(Failure::usage) for options that the model
/// cannot follow.
std::unique_ptr<Predictor> open(const Source& source, Head head, const Options& options);

}  // namespace bertrand::inference
