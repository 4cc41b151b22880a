#include "apps/training/checkpoint_store.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "bert/formats/crc32c.h"
#include "tensor/error.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
constexpr int kFormatVersion = 1;
constexpr const char* kManifest = "MANIFEST.json";

/// The number after `prefix` where the whole name is that.
std::optional<std::int64_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error != std::errc{} || end != name.data() + name.size() || value < 0) return {};
  return value;
}

std::uint32_t checksum(const fs::path& file) { return formats::crc32c(formats::MappedFile(file).bytes()); }

void check_space(const fs::path& directory, std::size_t needed) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (!error && space.available < needed)
    fail(Failure::io, "{}: checkpoint: No space left on device: needed {} bytes, available {} bytes", directory.string(), needed, space.available);
}

Json manifest_of(const fs::path& staged, std::int64_t step, const TensorChecksums& tensors) {
  Json manifest;
  manifest["format_version"] = kFormatVersion;
  manifest["step"] = step;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(staged)) names.insert(entry.path().filename().string());
  for (const std::string& name : names)
    manifest["files"][name] = {{"bytes", fs::file_size(staged / name)}, {"crc32c", checksum(staged / name)}};
  manifest["tensors"] = Json::object();
  for (const auto& [name, crc] : tensors) manifest["tensors"][name] = crc;
  return manifest;
}

}  // namespace

void CheckpointStore::save(std::int64_t step, int keep, std::size_t bytes_needed, const std::function<TensorChecksums(const fs::path&)>& fill) {
  const fs::path final_path = directory_ / ("checkpoint-" + std::to_string(step));
  const fs::path staged = final_path.string() + ".tmp-" + std::to_string(::getpid());
  check_space(directory_, bytes_needed);
  try {
    files_.make_directory(staged);
    const TensorChecksums tensors = fill(staged);
    const std::string facts = manifest_of(staged, step, tensors).dump(1) + "\n";  // before the manifest itself is there
    formats::FileWriter manifest(files_, staged / kManifest);
    manifest.write(facts);
    manifest.finish();
    files_.sync_directory(staged);
    if (fs::exists(final_path)) files_.remove_all(final_path);  // saved before by a run that was resumed from an older one
    files_.rename(staged, final_path);
    files_.sync_directory(directory_);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(staged, ignored);
    throw;
  }
  const std::vector<Found> all = list();
  for (std::size_t i = static_cast<std::size_t>(std::max(1, keep)); i < all.size(); ++i) files_.remove_all(all[i].directory);
}

std::vector<CheckpointStore::Found> CheckpointStore::list() const {
  std::vector<Found> all;
  if (!fs::is_directory(directory_)) return all;
  for (const auto& entry : fs::directory_iterator(directory_))
    if (const auto step = number_after(entry.path().filename().string(), "checkpoint-"); step && entry.is_directory())
      all.push_back({*step, entry.path()});
  std::sort(all.begin(), all.end(), [](const Found& a, const Found& b) { return a.step > b.step; });
  return all;
}

std::optional<CheckpointStore::Found> CheckpointStore::newest(std::vector<std::string>& skipped) const {
  for (const Found& found : list()) {
    const std::string wrong = verify_checkpoint(found.directory);
    if (wrong.empty()) return found;
    skipped.push_back(found.directory.filename().string() + ": " + wrong);
  }
  return {};
}

void CheckpointStore::remove_leftovers() {
  if (!fs::is_directory(directory_)) return;
  std::vector<fs::path> dead;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    const std::size_t at = name.rfind(".tmp-");
    if (at == std::string::npos) continue;
    const auto pid = number_after(name.substr(at), ".tmp-");
    if (pid && (*pid == ::getpid() || ::kill(static_cast<pid_t>(*pid), 0) != 0)) dead.push_back(entry.path());
  }
  for (const fs::path& path : dead) files_.remove_all(path);
}

std::string verify_checkpoint(const fs::path& checkpoint) {
  try {
    const fs::path path = checkpoint / kManifest;
    if (!fs::exists(path)) return "MANIFEST.json is not there";
    const Json manifest = Json::parse(formats::read_file(path));
    if (manifest.at("format_version") != kFormatVersion)
      return fmt::format("MANIFEST.json: format_version: expected {}, got {}", kFormatVersion, manifest.at("format_version").dump());
    if (!number_after(checkpoint.filename().string(), "checkpoint-") || manifest.at("step") != *number_after(checkpoint.filename().string(), "checkpoint-"))
      return "MANIFEST.json: step: another than the directory's name says";
    for (const auto& [name, facts] : manifest.at("files").items()) {
      if (fs::path(name).filename() != name) return "MANIFEST.json: a file name with a directory in it";
      if (!fs::exists(checkpoint / name)) return name + " is not there";
      const auto bytes = facts.at("bytes").get<std::uint64_t>(), found = static_cast<std::uint64_t>(fs::file_size(checkpoint / name));
      if (bytes != found) return fmt::format("{}: expected {} bytes, got {}", name, bytes, found);
      const auto crc = facts.at("crc32c").get<std::uint32_t>(), actual = checksum(checkpoint / name);
      if (crc != actual) return fmt::format("{}: crc32c: expected {:#010x}, got {:#010x}", name, crc, actual);
    }
  } catch (const std::exception& e) {
    return std::string("MANIFEST.json: ") + e.what();
  }
  return {};
}

}  // namespace bertrand::training
