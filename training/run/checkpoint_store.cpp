#include "training/run/checkpoint_store.h"

#include <unistd.h>

#include <algorithm>
#include <functional>

#include "io/crc32c.h"
#include "io/error.h"
#include "io/input_files.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "training/run/run_files.h"
#include "training/run/run_state.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;
using io::Json;
constexpr int kManifestVersion = 1;
constexpr const char *kOwnChecksum = ",\n \"crc32c\": ", *kEnd = "\n}\n";  // how a manifest ends

/// In blocks: a mapped file would count as memory of the process.
std::uint32_t checksum(const fs::path& file) { return InputFile::of(file).crc32c; }

/// The manifest of the files in `staged`. Its last value is the CRC-32C of the text before it, so that it can vouch for
/// itself too.
std::string manifest_of(const fs::path& staged, std::int64_t step, const TensorChecksums& tensors) {
  Json manifest;
  manifest["format_version"] = kManifestVersion;
  manifest["step"] = step;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(staged)) names.insert(entry.path().filename().string());
  for (const std::string& name : names)
    manifest["files"][name] = {{"bytes", fs::file_size(staged / name)}, {"crc32c", checksum(staged / name)}};
  manifest["tensors"] = Json::object();
  for (const auto& [name, crc] : tensors) io::append(manifest["tensors"], name, crc);
  const std::string text = manifest.dump(1), facts = text.substr(0, text.size() - 2);  // without the last brace
  return fmt::format("{}{}{}{}", facts, kOwnChecksum, io::crc32c(facts), kEnd);
}

/// "" or what is wrong with the text of a manifest.
std::string verify_manifest(const std::string& text) {
  const std::size_t at = text.rfind(kOwnChecksum);
  if (at == std::string::npos) return "crc32c: expected it at the end, got none";
  const std::uint32_t actual = io::crc32c(text.substr(0, at));
  if (text.substr(at) != fmt::format("{}{}{}", kOwnChecksum, actual, kEnd))
    return fmt::format("crc32c: expected {}, got another", actual);
  return "";
}

/// The first tensor of a damaged file that is not as the manifest says, for the message.
std::string damaged_tensor(const fs::path& path, const Json& tensors) {
  try {
    const io::SafetensorsFile file(path);
    for (const io::SafetensorsEntry& entry : file.entries()) {
      const auto known = tensors.find(path.filename().string() + "/" + entry.name);
      if (known != tensors.end() && *known != io::crc32c(entry.bytes))
        return fmt::format(" tensor \"{}\":", entry.name);
    }
  } catch (const Error&) {  // no safetensors file, or one with a damaged header
  }
  return "";
}

/// "" or what is wrong with one file of a checkpoint.
std::string verify_file(const fs::path& path, const Json& facts, const Json& tensors) {
  const std::string name = path.filename().string();
  if (!fs::is_regular_file(path)) return name + " is not there";
  for (const char* key : {"bytes", "crc32c"})
    if (!facts.at(key).is_number_unsigned())
      return fmt::format("{}: {}: {}: expected a whole number, got {}", kManifest, name, key, io::shown(facts.at(key)));
  const auto bytes = facts.at("bytes").get<std::uintmax_t>(), found = fs::file_size(path);
  if (bytes != found) return fmt::format("{}: expected {} bytes, got {}", name, bytes, found);
  const auto crc = facts.at("crc32c").get<std::uint32_t>(), actual = checksum(path);
  if (crc == actual) return "";
  return fmt::format("{}:{} crc32c: expected {:#010x}, got {:#010x}", name, damaged_tensor(path, tensors), crc, actual);
}

}  // namespace

void check_space(const fs::path& directory, std::size_t needed) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (!error && space.available < needed)
    fail(Failure::io, "{}: checkpoint: No space left on device: needed {} bytes, available {} bytes",
         directory.string(), needed, space.available);
}

void CheckpointStore::save(std::int64_t step, std::size_t bytes_needed,
                           const std::function<TensorChecksums(const fs::path&)>& fill) {
  const std::vector<Found> before = list();
  try {
    check_space(directory_, bytes_needed);
    stage_and_rename(checkpoint_path(directory_, step), step, fill);
  } catch (const Error& error) {
    const bool older_helps = error.failure() == Failure::io || error.failure() == Failure::numerics;
    const auto last = std::ranges::find_if(before, [&](const Found& f) { return !damaged_.contains(f.directory); });
    if (!older_helps || last == before.end()) throw;
    fail(error.failure(), "{}; last checkpoint {}", error.what(), last->directory.string());
  }
}

void CheckpointStore::stage_and_rename(const fs::path& final_path, std::int64_t step,
                                       const std::function<TensorChecksums(const fs::path&)>& fill) {
  const fs::path staged = fmt::format("{}.tmp-{}", final_path.string(), ::getpid());
  if (fs::exists(fs::symlink_status(final_path)) && !is_own_checkpoint(final_path))
    fail(Failure::io, "{}: expected nothing or a checkpoint of this program, got something else; hint: move it away",
         final_path.string());
  try {
    files_.remove_all(staged);  // of an earlier process of this number
    files_.make_directory(staged);
    const TensorChecksums tensors = fill(staged);
    const std::string facts = manifest_of(staged, step, tensors);  // before the manifest itself is there
    io::write_file(files_, staged / kManifest, facts);
    files_.sync_directory(staged);
    // One of this step is there only if it is damaged: the run was resumed from an older one and came here again.
    if (fs::exists(final_path)) try_to_remove([&] { discard_checkpoint(files_, final_path); });
    files_.rename(staged, final_path);
    files_.sync_directory(directory_);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(staged, ignored);
    throw;
  }
  damaged_.erase(final_path);
}

/// Damaged ones do not count among those that are kept.
void CheckpointStore::remove_old(int keep) {
  int kept = 0;
  for (const Found& found : list())
    if (damaged_.contains(found.directory) || ++kept > std::max(1, keep))
      try_to_remove([&] { discard_checkpoint(files_, found.directory); });
}

/// The newest goes last: a run that is killed meanwhile never resumes from an older state than it had. For the same
/// reason all stay after one that cannot be removed.
void CheckpointStore::remove_all() {
  const std::vector<Found> found = list();
  try_to_remove([&] {
    for (auto each = found.rbegin(); each != found.rend(); ++each) discard_checkpoint(files_, each->directory);
  });
}

std::vector<CheckpointStore::Found> CheckpointStore::list() const {
  std::vector<Found> all;
  if (!fs::is_directory(directory_)) return all;
  for (const auto& entry : fs::directory_iterator(directory_))
    if (is_own_checkpoint(entry.path()))
      all.push_back({*checkpoint_step(entry.path().filename().string()), entry.path()});
  std::ranges::sort(all, std::greater(), &Found::step);
  return all;
}

std::optional<CheckpointStore::Found> CheckpointStore::newest(std::vector<std::string>& skipped) {
  for (const Found& found : list()) {
    const std::string wrong = verify_checkpoint(found.directory);
    if (wrong.empty()) return found;
    skipped.push_back(found.directory.filename().string() + ": " + wrong);
    damaged_.insert(found.directory);
  }
  return {};
}

std::string verify_checkpoint(const fs::path& checkpoint) {
  const std::string hint = fmt::format("make it readable, or if it is lost, move {} away", checkpoint.string());
  try {
    const fs::path path = checkpoint / kManifest;
    if (!fs::is_regular_file(path)) return fmt::format("{} is not there", kManifest);
    // Damage, so that the checkpoint before it is looked at.
    if (const std::uintmax_t bytes = fs::file_size(path); bytes > io::kMostSmallFile)
      return fmt::format("{}: expected at most {} bytes, got {}", kManifest, io::kMostSmallFile, bytes);
    const std::string text = io::read_file(path);
    if (const std::string wrong = verify_manifest(text); !wrong.empty()) return fmt::format("{}: {}", kManifest, wrong);
    const std::optional<Json> parsed = io::try_parse_json(text);
    if (!parsed) return fmt::format("{}: expected JSON, got none", kManifest);
    const Json& manifest = *parsed;
    if (const Json& version = manifest.at("format_version"); version != kManifestVersion)
      fail(Failure::model, "{}: format_version: expected {}, got {}; hint: another version of this program wrote it",
           path.string(), kManifestVersion, version.dump());
    if (const auto step = checkpoint_step(checkpoint.filename().string()); !step || manifest.at("step") != *step)
      return fmt::format("{}: step: another than the directory's name says", kManifest);
    for (const auto& [name, facts] : manifest.at("files").items()) {
      if (fs::path(name).filename() != name) return fmt::format("{}: a file name with a directory in it", kManifest);
      if (std::string wrong = verify_file(checkpoint / name, facts, manifest.at("tensors")); !wrong.empty())
        return wrong;
    }
  } catch (const Json::exception& e) {
    return fmt::format("{}: {}", kManifest, e.what());
  } catch (const fs::filesystem_error& e) {
    fail(Failure::io, "{}: {}; hint: {}", e.path1().string(), e.code().message(), hint);
  } catch (const Error& error) {
    if (error.failure() == Failure::io) fail_with_hint(error, hint.c_str());
    throw;
  }
  return {};
}

}  // namespace bertrand::training
