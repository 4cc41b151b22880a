// Which files and directories of a run directory are a run's own. Only these are ever removed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "io/files.h"

namespace bertrand::training {

/// The files that a checkpoint of this program has and others have not.
inline constexpr const char *kManifest = "MANIFEST.json", *kStateFile = "resume.json";
/// What a run that keeps its model alone has in place of checkpoints: the state that it ended in. Not called
/// kStateFile, or a run in a directory checkpoint-<step> would look like a checkpoint.
inline constexpr const char* kEndedFile = "ended.json";
/// The weights, of a checkpoint and of a model.
inline constexpr const char* kWeights = "model.safetensors";
/// What a run was begun with.
inline constexpr const char* kRunConfig = "run_config.json";
/// What its evaluation came to.
inline constexpr const char *kResultsText = "eval_results.txt", *kResultsJson = "eval_results.json";
/// What tells of the training.
inline constexpr const char *kMetricsLog = "metrics.jsonl", *kSamples = "samples.jsonl", *kProfile = "profile.json";

/// The directory of the checkpoint of that step: checkpoint-1200.
std::filesystem::path checkpoint_path(const std::filesystem::path& run, std::int64_t step);
/// 1200 of checkpoint-1200; none if `name` is not of that form.
std::optional<std::int64_t> checkpoint_step(std::string_view name);
/// Whether this is a directory checkpoint-<step> that a run of this program wrote: it holds a manifest or the state of
/// a run, be they whole or damaged. Other programs have directories of that name, too.
bool is_own_checkpoint(const std::filesystem::path& path);
/// Whether this is a run_config.json that a run of this program wrote.
bool is_own_run_config(const std::filesystem::path& path);
/// Removes a checkpoint. It has another name before the first of its files goes: half a checkpoint belongs to no run,
/// and would be in the way of the next one that has its name.
void discard_checkpoint(io::Files& files, const std::filesystem::path& checkpoint);
/// Calls `remove` for what a run no longer needs. An Error(Failure::io) is a warning: on NFS a file that somebody has
/// open stays in its directory, and that is no reason to end a run.
void try_to_remove(const std::function<void()>& remove);

/// The names that a program gives to what it writes into the directory of a run, beside those of the trainer itself.
/// Programs that may overwrite each other's runs have the same. A file that is not named here stays when --overwrite
/// removes its run.
struct ProgramFiles {
  std::vector<std::string_view> model;       ///< what Objective::save() writes beside model.safetensors
  std::vector<std::string_view> evaluation;  ///< what Objective::write_evaluation() writes
  std::vector<std::string_view> results;     ///< what else the model came to: predictions
  std::vector<std::string_view> pages;       ///< for people, made from the other files
  std::vector<std::string_view> kept;        ///< results that are not whole: --resume goes on with them
};
/// Whether a run writes a file of this name as a part of its model.
bool is_published(std::string_view name, const ProgramFiles& files);
/// Whether this is the name of a file of figures or predictions, or of the state that a run ended in.
bool is_result(std::string_view name, const ProgramFiles& files);
/// Whether it is the name of one that tells of the training, whatever it came to; a run that begins anew writes it
/// anew.
bool is_account(std::string_view name, const ProgramFiles& files);
/// Whether --resume may go on with this: a checkpoint, the state that a run ended in, or results that are not whole.
bool goes_on(const std::filesystem::path& path, const ProgramFiles& files);
/// Whether a run writes something under this name until it is whole, as config.json.tmp-HOST-4711 or model.tmp-4711.
bool is_temporary(std::string_view name, const ProgramFiles& files);
/// Whether a run may have written this file or directory.
bool belongs_to_run(const std::filesystem::path& path, const ProgramFiles& files);
/// Throws Error(Failure::usage) if `file`, the value of --`flag`, lies in a checkpoint, or beside the run_config.json
/// of a run and has a name that a run writes. Pages can be made again.
void refuse_file_of_run(const std::string& flag, const std::filesystem::path& file, const ProgramFiles& files);

}  // namespace bertrand::training
