// finetune's flags: those of every training program, and its own.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bert/tasks/dataset.h"
#include "bert/tasks/figures.h"
#include "bert/tasks/task.h"
#include "bert/tasks/token_data.h"
#include "training/run/settings.h"

namespace bertrand::finetune {

struct Options {
  training::Settings settings = training::finetuning_defaults();
  std::string task;
  std::filesystem::path model;                          ///< a model directory or a checkpoint
  bool strict = false;                                  ///< every tensor of `model` must fit
  std::filesystem::path vocab_file;                     ///< for a model directory without one
  bool cased = false;                                   ///< goes with vocab_file
  std::filesystem::path train, evaluation, prediction;  ///< each may be empty, but not all
  double eval_split = 0;                                ///< share of `train` to evaluate on; 0: none
  std::optional<std::uint64_t> eval_split_seed;         ///< draws that share; none: the run's seed does
  std::string metric_for_best_model;                    ///< "": as the task has it
  tasks::CustomColumns columns;                         ///< of --task custom; text and label also for words
  std::string kind = "classification";                  ///< of --task custom
  std::string label_separator = ",";
  std::string language = "zh";  ///< of --task xnli
  int max_query_length = 64;    ///< of --task msmarco, squad and squad2
  std::string class_weights;    ///< "balanced" or numbers between commas; empty: all classes weigh 1
  double label_smoothing = 0;
  tasks::OnBadRow on_bad_row = tasks::OnBadRow::hint;     ///< of the file to predict
  std::vector<std::string> sweep;                         ///< FLAG=VALUE,VALUE…
  std::filesystem::path qrels;                            ///< of --task msmarco
  tasks::TokenLayout layout = tasks::TokenLayout::words;  ///< of the tasks that label words
  bool label_all_pieces = false;                          ///< of these tasks
  std::optional<int> doc_stride;  ///< of these: pieces that windows share; of squad and squad2: from one to the next
  int n_best_size = 20, max_answer_length = 30;  ///< of --task squad and squad2
  double null_score_diff_threshold = 0;          ///< of --task squad2

  /// What is read.
  std::vector<std::filesystem::path> files() const { return {model, vocab_file, train, evaluation, prediction, qrels}; }
  bool ranks() const { return task == "msmarco"; }
  bool finds_spans() const { return task == "squad" || task == "squad2"; }
  /// --max-seq-length if it is not given, no run made the model, and that has so many positions.
  std::int64_t usual_length() const { return ranks() ? 512 : finds_spans() ? 384 : 128; }
  /// Whether the model is judged while it is trained.
  bool evaluates() const { return !evaluation.empty() || eval_split > 0; }
  std::uint64_t split_seed() const { return eval_split_seed.value_or(settings.seed); }
  /// The figures of the task, with the one that is to decide. Throws Error(Failure::usage) if it has none of that name.
  std::vector<tasks::Figure> figures() const;
  /// The task that classifies texts.
  tasks::Task make_task() const;
  /// What --task says of labelling words, if it is such a task.
  std::optional<tasks::TokenOptions> token_options() const;
  /// The numbers of --class-weights; none if it is not given or "balanced". Throws Error(Failure::usage).
  std::vector<double> class_weight_numbers() const;
};

/// Declares finetune's flags, its own first.
void add_flags(training::FlagTable& table, Options& options);
/// Its own.
void add_own_flags(training::FlagTable& table, Options& options);

/// After parsing: settings that depend on others, and flags that do not fit together. Throws Error(Failure::usage).
void complete(Options& options);

}  // namespace bertrand::finetune
