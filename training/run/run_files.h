// Which files and directories of a run directory are a run's own. Only these are ever removed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

namespace bertrand::training {

/// The files that a checkpoint of this program has and others have not.
inline constexpr const char *kManifest = "MANIFEST.json", *kStateFile = "resume.json";

/// 1200 of checkpoint-1200; none if `name` is not of that form.
std::optional<std::int64_t> checkpoint_step(std::string_view name);
/// Whether this is a directory checkpoint-<step> that a run of this program wrote: it holds a manifest or the state of
/// a run, be they whole or damaged. Other programs have directories of that name, too.
bool is_own_checkpoint(const std::filesystem::path& path);
/// Whether this is a run_config.json that a run of this program wrote.
bool is_own_run_config(const std::filesystem::path& path);
/// Whether a run writes a file of this name as a part of its model.
bool is_model_file(std::string_view name);
/// Whether this is the name of a file of figures or predictions.
bool is_result(std::string_view name);
/// Whether it is one of those that tell of the training, whatever it came to; a run that begins anew writes it anew.
bool is_account(std::string_view name);
/// The process that was writing a file or directory of a run under this temporary name, as config.json.tmp-4711; none
/// for other names.
std::optional<std::int64_t> writer_of_leftover(std::string_view name);
/// Whether a run may have written this file or directory.
bool belongs_to_run(const std::filesystem::path& path);

}  // namespace bertrand::training
