#include "training/run/run_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_names.h"
#include "io/machine.h"
#include "io/temporary_name.h"
#include "training/run/run_config.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".lock";
constexpr int kTurns = 100;  // beyond any number of runs that claim and leave a directory at the same moment

bool is_within(const fs::path& path, const fs::path& directory) {
  std::error_code ignored;
  const fs::path inner = fs::weakly_canonical(path, ignored), outer = fs::weakly_canonical(directory, ignored);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// "4711 on host a": a lock may be held from another machine.
std::string name_of_process() { return fmt::format("{} on host {}", ::getpid(), io::host_name()); }

/// An open file that this process alone has locked and that holds its name. A link that somebody put there is not
/// followed: it might lead to any file of the user's.
io::Descriptor lock_file(const fs::path& file, const fs::path& directory) {
  for (int turn = 1; turn <= kTurns; ++turn) {
    io::Descriptor lock(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
    if (!lock) io::refuse_call(file, "open", errno);
    if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
      const int error = errno;
      if (error == ENOSYS || error == EOPNOTSUPP || error == ENOLCK)
        fail(Failure::io, "{}: flock: {}; hint: name an --output on a file system with locks", file.string(),
             std::strerror(error));
      if (error != EWOULDBLOCK) io::refuse_call(file, "flock", error);
      char owner[300] = {};
      const bool known = ::pread(lock.number(), owner, sizeof owner - 1, 0) > 0;
      fail(Failure::usage, "{}: output directory in use by process {}; hint: wait for it, or name another --output",
           directory.string(), known ? owner : "unknown");
    }
    const std::string owner = name_of_process();
    if (io::is_named(lock, file)) {
      if (::ftruncate(lock.number(), 0) == 0 && ::pwrite(lock.number(), owner.data(), owner.size(), 0) >= 0)
        return lock;
      const int error = errno;
      ::unlink(file.c_str());
      io::refuse_call(file, "write", error);
    }
  }
  // Somebody removes it again and again, or the file system numbers a name and an open file differently.
  fail(Failure::io,
       "{}: expected the file that this process has locked, got another or none, {} times; hint: name another --output",
       file.string(), kTurns);
}

}  // namespace

/// The calls that use a path ask first whether the directory is held. Those that use a descriptor need not: it leads to
/// the same file wherever that was moved.
class RunDirectory::HeldFiles : public io::Files {
 public:
  HeldFiles(const RunDirectory& directory, io::Files& files) : directory_(directory), files_(files) {}

  int open(const fs::path& file, io::Opening opening) override { return held().open(file, opening); }
  void write(int descriptor, std::span<const std::byte> bytes, const fs::path& file) override {
    files_.write(descriptor, bytes, file);
  }
  void sync(int descriptor, const fs::path& file) override { files_.sync(descriptor, file); }
  void close(int descriptor, const fs::path& file) override { files_.close(descriptor, file); }
  void make_directory(const fs::path& directory) override { held().make_directory(directory); }
  void sync_directory(const fs::path& directory) override { held().sync_directory(directory); }
  void rename(const fs::path& from, const fs::path& to) override { held().rename(from, to); }
  void remove_all(const fs::path& path) override { held().remove_all(path); }
  void cut(const fs::path& file, std::uint64_t bytes) override { held().cut(file, bytes); }

 private:
  io::Files& held() const {
    directory_.require_held();
    return files_;
  }

  const RunDirectory& directory_;
  io::Files& files_;
};

RunDirectory::RunDirectory(const fs::path& path, ExistingRun existing, ProgramFiles names, io::Files& files)
    : path_(io::without_slash(path)),
      names_(std::move(names)),
      files_(files),
      held_files_(std::make_unique<HeldFiles>(*this, files)) {
  if (path.empty()) fail(Failure::usage, "--output: expected a directory, got none");
  io::check_directory("output", path_);
  try {
    make_directories(path_);
    lock_ = lock_file(path_ / kLock, path_);
    find_earlier_run(existing);
  } catch (...) {
    let_go();
    throw;
  }
}

RunDirectory::~RunDirectory() { let_go(); }

void RunDirectory::require_held() const {
  if (io::is_named(lock_, path_ / kLock)) return;
  fail(Failure::usage,
       "{}: expected the directory and the .lock that this run began with, got {}; hint: somebody moved or removed "
       "them: --resume, with --output as the directory is called now, goes on from the last checkpoint",
       path_.string(), fs::exists(path_ / kLock) ? "those of another run" : "none");
}

/// Creates a directory and those it lies in. Each is durable: a checkpoint in a directory that a power failure takes
/// away would be lost.
void RunDirectory::make_directories(const fs::path& path) {
  if (fs::is_directory(path)) return;
  const fs::path parent = io::parent_of(path);
  make_directories(parent);
  files_.make_directory(path);
  created_.push_back(path);
  files_.sync_directory(parent);
}

/// Decides about what is there already. The lock is held.
void RunDirectory::find_earlier_run(ExistingRun existing) {
  std::vector<fs::path> found;
  bool ran = false;
  std::string foreign;  // what no run of this program wrote, unless there is a run
  for (const auto& entry : fs::directory_iterator(path_)) {
    const fs::path& path = entry.path();
    const std::string name = path.filename().string();
    if (belongs_to_run(path, names_)) found.push_back(path);
    const bool of_run = is_own_run_config(path) || is_own_checkpoint(path);
    ran = ran || of_run;
    if (!of_run && (is_published(name, names_) || checkpoint_step(name) || name == kRunConfig))
      foreign = std::max(foreign, name);
  }
  if (!ran && !foreign.empty())
    fail(Failure::usage,
         "{}: expected a run of this program or none, got {}, which no such run wrote; hint: name another "
         "--output",
         path_.string(), foreign);
  if (found.empty()) return;
  std::sort(found.begin(), found.end());
  if (existing == ExistingRun::refuse)
    fail(Failure::usage, "{}: expected no run there, got {}; hint: {}--overwrite removes it", path_.string(),
         found.front().filename().string(),
         is_cut_short(path_) || std::ranges::any_of(found, [&](const fs::path& path) { return goes_on(path, names_); })
             ? "--resume goes on with it, "
             : "");
  if (existing != ExistingRun::overwrite) return;
  // What shows that this is a run goes last, so that a removal that was interrupted can be begun again.
  std::stable_partition(found.begin(), found.end(),
                        [](const fs::path& path) { return !is_own_checkpoint(path) && !is_own_run_config(path); });
  earlier_ = std::move(found);
}

void RunDirectory::require_kept(const std::vector<fs::path>& inputs) const {
  std::error_code absent;  // a file that is not there is no directory
  for (const fs::path& input : inputs)
    for (const fs::path& entry : earlier_)
      if (!input.empty() && (is_within(input, entry) || fs::equivalent(input, path_, absent)))
        fail(Failure::usage,
             "{}: --overwrite: expected input outside the run that it removes, got {}; hint: name another --output",
             path_.string(), input.string());
}

void RunDirectory::clear() {
  for (const fs::path& entry : std::exchange(earlier_, {})) {
    const std::string name = entry.filename().string();
    if (checkpoint_step(name)) discard_checkpoint(files_, entry);
    else if (is_temporary(name, names_)) io::remove_unless_written(files_, entry);
    else files_.remove_all(entry);
  }
}

void RunDirectory::remove_leftovers() {
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(path_))
    if (is_temporary(entry.path().filename().string(), names_)) left.push_back(entry.path());
  for (const fs::path& path : left) try_to_remove([&] { io::remove_unless_written(files_, path); });
}

void RunDirectory::refuse_results() const {
  if (fs::exists(path_ / kEndedFile))
    fail(Failure::usage,
         "{}: --resume: expected a checkpoint to go on from, got none, as the run ended with --save-model-only; hint: "
         "its model can begin another run: --model {} for finetune, --init for pretrain",
         path_.string(), path_.string());
  // One that was to become longer has results of its first end.
  if (is_cut_short(path_) && !fs::exists(path_ / kResultsJson)) return;
  for (const auto& entry : fs::directory_iterator(path_)) {
    const std::string name = entry.path().filename().string();
    if (name != kWeights && !is_result(name, names_)) continue;
    fail(Failure::usage,
         "{}: --resume: expected a checkpoint to go on from, got none beside {}; hint: --overwrite removes that run, "
         "or name another --output",
         path_.string(), name);
  }
}

void RunDirectory::let_go() {
  std::error_code ignored;
  if (lock_) {
    if (io::is_named(lock_, path_ / kLock)) fs::remove(path_ / kLock, ignored);
    else created_.clear();  // it was moved away: what has its name now is another's
    lock_.close();          // on NFS a removed file stays under another name, in the directory, until it is closed
  }
  while (!created_.empty()) {
    ::rmdir(created_.back().c_str());  // fails if there is something in it
    created_.pop_back();
  }
}

std::unique_ptr<RunDirectory> claim_output(const Settings& settings, const std::vector<fs::path>& inputs,
                                           const ProgramFiles& names) {
  if (settings.plan_only || (settings.is_rehearsal() && settings.output.empty())) return nullptr;
  auto directory = std::make_unique<RunDirectory>(settings.output,
                                                  settings.resume      ? ExistingRun::resume
                                                  : settings.overwrite ? ExistingRun::overwrite
                                                                       : ExistingRun::refuse,
                                                  names);
  directory->require_kept(inputs);
  return directory;
}

}  // namespace bertrand::training
