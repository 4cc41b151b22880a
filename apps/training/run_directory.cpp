#include "apps/training/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tensor/error.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

/// Whether a run wrote this file or directory: only such things are removed when a run is overwritten.
bool belongs_to_run(const std::string& name) {
  static const char* const kFiles[] = {"config.json",       "model.safetensors", "vocab.txt",         "tokenizer_config.json", "run_config.json",
                                       "metrics.jsonl",     "eval_results.txt",  "eval_results.json", "predictions.tsv",       ".lock"};
  return std::find(std::begin(kFiles), std::end(kFiles), name) != std::end(kFiles) || name.starts_with("checkpoint-") ||
         name.starts_with("events.out.tfevents.") || name.find(".tmp-") != std::string::npos;
}

}  // namespace

RunDirectory::RunDirectory(const fs::path& path, ExistingRun existing) : path_(path) {
  if (path.empty()) fail(Failure::usage, "--output: expected a directory, got none");
  if (fs::exists(path) && !fs::is_directory(path)) fail(Failure::usage, "--output: expected a directory, got the file {}", path.string());
  formats::Files::system().make_directory(path);

  const fs::path lock = path / ".lock";
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) fail(Failure::io, "{}: open: {}", lock.string(), std::strerror(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    const ssize_t read = ::pread(lock_, pid, sizeof pid - 1, 0);
    ::close(lock_);
    fail(Failure::usage, "{}: output directory in use by process {}; hint: wait for it, or name another --output", path.string(), read > 0 ? pid : "unknown");
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(lock_, 0) != 0 || ::pwrite(lock_, pid.data(), pid.size(), 0) < 0) {
    const int error = errno;
    ::close(lock_);
    fail(Failure::io, "{}: write: {}", lock.string(), std::strerror(error));
  }

  std::vector<fs::path> run;
  for (const auto& entry : fs::directory_iterator(path))
    if (belongs_to_run(entry.path().filename().string()) && entry.path().filename() != ".lock") run.push_back(entry.path());
  if (run.empty() || existing == ExistingRun::resume) return;
  if (existing == ExistingRun::refuse) {
    ::close(lock_);
    fail(Failure::usage, "{}: expected no run there, got {}; hint: --resume goes on with it, --overwrite removes it", path.string(), run.front().filename().string());
  }
  for (const fs::path& entry : run) formats::Files::system().remove_all(entry);
}

RunDirectory::~RunDirectory() {
  std::error_code ignored;
  fs::remove(path_ / ".lock", ignored);
  ::close(lock_);  // and with it the lock
}

}  // namespace bertrand::training
