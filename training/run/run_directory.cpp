#include "training/run/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "io/error.h"
#include "io/host_name.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kModelFiles = {"config.json", "model.safetensors", "vocab.txt",
                                                         "tokenizer_config.json"};
constexpr std::array<std::string_view, 5> kRunFiles = {"run_config.json", "metrics.jsonl", "eval_results.txt",
                                                       "eval_results.json", "predictions.tsv"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_checkpoint(std::string_view name) {
  constexpr std::string_view kPrefix = "checkpoint-";
  return name.starts_with(kPrefix) && is_number(name.substr(kPrefix.size()));
}

/// Whether a run may have written this file or directory: only such things are removed when a run is overwritten.
bool belongs_to_run(std::string_view name) {
  // What was being written when a process of this number died.
  if (const std::size_t at = name.rfind(".tmp-"); at != std::string_view::npos && is_number(name.substr(at + 5))) {
    name = name.substr(0, at);
    if (name == "model" || (name.ends_with(".old") && is_checkpoint(name.substr(0, name.size() - 4)))) return true;
  }
  return is_one_of(kModelFiles, name) || is_one_of(kRunFiles, name) || is_checkpoint(name) ||
         name.starts_with("events.out.tfevents.");
}

bool is_within(const fs::path& path, const fs::path& directory) {
  std::error_code ignored;
  const fs::path inner = fs::weakly_canonical(path, ignored), outer = fs::weakly_canonical(directory, ignored);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

[[noreturn]] void refuse(const fs::path& file, const char* call, int error) {
  fail(Failure::io, "{}: {}: {}", file.string(), call, std::strerror(error));
}

/// Whether the open file is still the one of this name: its last holder may have removed it before it let go.
bool is_still(int descriptor, const fs::path& file) {
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::stat(file.c_str(), &named) == 0 && open.st_ino == named.st_ino &&
         open.st_dev == named.st_dev;
}

/// "4711 on host a": a lock may be held from another machine.
std::string name_of_process() { return fmt::format("{} on host {}", ::getpid(), io::host_name()); }

/// An open file that this process alone has locked and that holds its name.
int lock_file(const fs::path& file, const fs::path& directory) {
  while (true) {
    const int lock = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (lock < 0) refuse(file, "open", errno);
    if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      char owner[300] = {};
      const bool known = ::pread(lock, owner, sizeof owner - 1, 0) > 0;
      ::close(lock);
      if (error != EWOULDBLOCK) refuse(file, "flock", error);
      fail(Failure::usage, "{}: output directory in use by process {}; hint: wait for it, or name another --output",
           directory.string(), known ? owner : "unknown");
    }
    const std::string owner = name_of_process();
    if (is_still(lock, file)) {
      if (::ftruncate(lock, 0) == 0 && ::pwrite(lock, owner.data(), owner.size(), 0) >= 0) return lock;
      const int error = errno;
      ::unlink(file.c_str());
      ::close(lock);
      refuse(file, "write", error);
    }
    ::close(lock);
  }
}

}  // namespace

RunDirectory::RunDirectory(const fs::path& path, ExistingRun existing, io::Files& files)
    : path_(path.has_filename() ? path : path.parent_path()), files_(files) {
  if (path.empty()) fail(Failure::usage, "--output: expected a directory, got none");
  if (fs::exists(path_) && !fs::is_directory(path_))
    fail(Failure::usage, "--output: expected a directory, got the file {}", path_.string());
  try {
    make_directories(path_);
    lock_ = lock_file(path_ / ".lock", path_);
    find_earlier_run(existing);
  } catch (...) {
    let_go();
    throw;
  }
}

RunDirectory::~RunDirectory() { let_go(); }

/// Creates a directory and those it lies in. Each is durable: a checkpoint in a directory that a power failure takes
/// away would be lost.
void RunDirectory::make_directories(const fs::path& path) {
  if (fs::is_directory(path)) return;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  make_directories(parent);
  files_.make_directory(path);
  created_.push_back(path);
  files_.sync_directory(parent);
}

/// Decides about what is there already, the lock being held.
void RunDirectory::find_earlier_run(ExistingRun existing) {
  std::vector<fs::path> found;
  bool ran = false, model = false;
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (belongs_to_run(name)) found.push_back(entry.path());
    ran = ran || name == "run_config.json" || is_checkpoint(name);
    model = model || is_one_of(kModelFiles, name);
  }
  if (found.empty()) return;
  std::sort(found.begin(), found.end());
  if (model && !ran)
    fail(Failure::usage, "{}: expected a run or none, got a model that no run wrote there; hint: name another --output",
         path_.string());
  if (existing == ExistingRun::refuse)
    fail(Failure::usage, "{}: expected no run there, got {}; hint: --resume goes on with it, --overwrite removes it",
         path_.string(), found.front().filename().string());
  if (existing == ExistingRun::overwrite) earlier_ = std::move(found);
}

void RunDirectory::require_kept(const std::vector<fs::path>& inputs) const {
  for (const fs::path& input : inputs)
    for (const fs::path& entry : earlier_)
      if (!input.empty() && is_within(input, entry))
        fail(Failure::usage,
             "--overwrite: expected input outside the run that it removes, got {}; hint: name another --output",
             input.string());
}

void RunDirectory::clear() {
  for (const fs::path& entry : std::exchange(earlier_, {})) files_.remove_all(entry);
}

void RunDirectory::let_go() {
  std::error_code ignored;
  if (lock_ >= 0) {
    fs::remove(path_ / ".lock", ignored);
    ::close(lock_);  // and with it the lock
  }
  while (!created_.empty()) {
    ::rmdir(created_.back().c_str());  // fails where there is something in it
    created_.pop_back();
  }
}

std::unique_ptr<RunDirectory> claim_output(const Settings& settings, const std::vector<fs::path>& inputs) {
  if (settings.plan_only) return nullptr;
  auto directory = std::make_unique<RunDirectory>(settings.output, settings.resume      ? ExistingRun::resume
                                                                   : settings.overwrite ? ExistingRun::overwrite
                                                                                        : ExistingRun::refuse);
  directory->require_kept(inputs);
  return directory;
}

}  // namespace bertrand::training
