#include "training/run/run_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "io/error.h"
#include "io/input_files.h"
#include "io/json.h"
#include "io/numbers.h"
#include "io/say.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kResults = {kResultsText, kResultsJson, kEndedFile};
constexpr std::array<std::string_view, 3> kAccounts = {kMetricsLog, kSamples, kProfile};
constexpr std::string_view kCheckpoint = "checkpoint-", kTemporary = ".tmp-", kDiscarded = ".old";

bool contains(const auto& names, std::string_view name) { return std::ranges::find(names, name) != names.end(); }

}  // namespace

bool is_published(std::string_view name, const ProgramFiles& files) {
  return name == kWeights || contains(files.model, name);
}

bool is_result(std::string_view name, const ProgramFiles& files) {
  return contains(kResults, name) || contains(files.evaluation, name) || contains(files.results, name) ||
         contains(files.kept, name);
}

bool is_account(std::string_view name, const ProgramFiles& files) {
  return contains(kAccounts, name) || contains(files.pages, name);
}

fs::path checkpoint_path(const fs::path& run, std::int64_t step) {
  return run / fmt::format("{}{}", kCheckpoint, step);
}

std::optional<std::int64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(kCheckpoint)) return {};
  return io::whole_number(name.substr(kCheckpoint.size()));
}

bool is_own_checkpoint(const fs::path& path) {
  std::error_code error;
  return checkpoint_step(path.filename().string()) && fs::is_directory(path, error) &&
         (fs::is_regular_file(path / kManifest, error) || fs::is_regular_file(path / kStateFile, error));
}

bool goes_on(const fs::path& path, const ProgramFiles& files) {
  const std::string name = path.filename().string();
  return is_own_checkpoint(path) || name == kEndedFile || contains(files.kept, name);
}

bool is_own_run_config(const fs::path& path) {
  std::error_code error;
  if (path.filename() != kRunConfig || !fs::is_regular_file(path, error)) return false;
  if (const std::uintmax_t bytes = fs::file_size(path, error); error || bytes > io::kMostSmallFile) return false;
  const std::optional<io::Json> json = io::try_parse_json(io::read_file(path));
  return json && json->is_object() && json->contains("program") && json->contains("settings");
}

void discard_checkpoint(io::Files& files, const fs::path& checkpoint) {
  const fs::path discarded = fmt::format("{}{}{}{}", checkpoint.string(), kDiscarded, kTemporary, ::getpid());
  files.rename(checkpoint, discarded);
  files.remove_all(discarded);
}

void try_to_remove(const std::function<void()>& remove) {
  try {
    remove();
  } catch (const Error& error) {
    if (error.failure() != Failure::io) throw;
    io::warn("{}; it is left there", error.what());
  }
}

bool is_temporary(std::string_view name, const ProgramFiles& files) {
  const std::size_t at = name.rfind(kTemporary);
  if (at == std::string_view::npos) return false;
  const std::string_view writer = name.substr(at + kTemporary.size());  // HOST-PID or PID
  if (!io::whole_number(writer.substr(writer.rfind('-') + 1))) return false;
  name = name.substr(0, at);
  const bool discarded = name.ends_with(kDiscarded) && checkpoint_step(name.substr(0, name.size() - kDiscarded.size()));
  return discarded || name == "model" || name == kRunConfig || checkpoint_step(name) || is_published(name, files) ||
         is_result(name, files) || is_account(name, files);
}

bool belongs_to_run(const fs::path& path, const ProgramFiles& files) {
  const std::string name = path.filename().string();
  return is_published(name, files) || is_result(name, files) || is_account(name, files) ||
         name.starts_with("events.out.tfevents.") || is_temporary(name, files) || is_own_checkpoint(path) ||
         is_own_run_config(path);
}

void refuse_file_of_run(const std::string& flag, const fs::path& file, const ProgramFiles& files) {
  std::error_code ignored;
  const fs::path place = fs::weakly_canonical(fs::absolute(file, ignored), ignored);  // what a link leads to
  const fs::path directory = place.parent_path();
  const bool is_of_run = is_own_run_config(directory / kRunConfig) && belongs_to_run(place, files) &&
                         !contains(files.pages, place.filename().string());
  if (is_of_run || is_own_checkpoint(directory))
    fail(Failure::usage, "--{}: expected a name that no run writes to, got {}", flag, file.string());
}

}  // namespace bertrand::training
