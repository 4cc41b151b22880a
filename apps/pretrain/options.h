// pretrain's flags: those of every training program, and its own.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "bert/data/input_check.h"
#include "bert/data/pretraining_text_masks.h"
#include "io/tfrecord.h"
#include "training/run/settings.h"

namespace bertrand::pretrain {

struct Options {
  training::Settings settings = training::pretraining_defaults();
  std::vector<std::filesystem::path> inputs, evaluation_inputs;
  std::string recipe;                ///< name of one of recipes(), or empty
  std::string config;                ///< name of a preset or a file; empty with `init`
  std::filesystem::path init;        ///< model directory to start from; empty with `config`
  bool strict = false;               ///< every tensor of `init` must fit
  bool keep_moments = false;         ///< of the optimizer, with `init`
  std::filesystem::path vocabulary;  ///< vocab.txt; empty: the one in `init`
  bool cased = false;                ///< goes with `vocabulary`
  io::OnCorrupt on_corrupt = io::OnCorrupt::stop;
  data::InputCheck check_inputs = data::InputCheck::index;
  data::MaskingOptions masking;
  double short_seq_prob = 0.1;
  bool no_next_sentence = false;
};

/// Declares pretrain's flags, its own first.
void add_flags(training::FlagTable& table, Options& options);
/// Its own.
void add_own_flags(training::FlagTable& table, Options& options);

/// What the plan says of the recipe: its name and what differs from it. Empty if there is none. `longest`: the most
/// tokens that an example has.
std::string recipe_text(const Options& options, std::int64_t longest);

/// After parsing: the recipe, settings that depend on others, and flags that do not fit together. Throws
/// Error(Failure::usage).
void complete(Options& options);

enum class InputKind { text, records, corpus };
/// What these files, which are of one kind, are: a directory is a corpus; TFRecords are known by what they begin with,
/// or, if that is damaged, by the name .tfrecord, also with .gz or .zst. Empty files are of any kind.
InputKind kind_of(const std::vector<std::filesystem::path>& files);

}  // namespace bertrand::pretrain
