// Saves a checkpoint and is killed: before the first call that changes the disk, before the second, … What is left?
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "training/run/checkpoint_store.h"

using namespace bertrand;
namespace fs = std::filesystem;

namespace {

/// The calls that change a disk, of a process that is killed before call number `last`.
class KilledFiles : public io::Files {
 public:
  explicit KilledFiles(int last) : left_(last) {}
  int open(const fs::path& file, io::Opening opening) override { return count(), Files::open(file, opening); }
  void write(int descriptor, std::span<const std::byte> bytes, const fs::path& file) override {
    count(), Files::write(descriptor, bytes, file);
  }
  void sync(int descriptor, const fs::path& file) override { count(), Files::sync(descriptor, file); }
  void close(int descriptor, const fs::path& file) override { count(), Files::close(descriptor, file); }
  void make_directory(const fs::path& directory) override { count(), Files::make_directory(directory); }
  void sync_directory(const fs::path& directory) override { count(), Files::sync_directory(directory); }
  void rename(const fs::path& from, const fs::path& to) override { count(), Files::rename(from, to); }
  void remove_all(const fs::path& path) override { count(), Files::remove_all(path); }

 private:
  void count() {
    if (--left_ == 0) std::raise(SIGKILL);
  }
  int left_;
};

const std::string kOld(1000, 'o'), kNew(1000, 'n');

/// Two writes, as a large file has many.
void write_weights(io::Files& files, const fs::path& file, const std::string& text) {
  io::FileWriter writer(files, file);
  writer.write(text.substr(0, 500));
  writer.write(text.substr(500));
  writer.finish();
}

void save_checkpoint(io::Files& files, const fs::path& directory, int step, const std::string& text) {
  training::CheckpointStore(directory, files).save(step, text.size(), [&](const fs::path& staged) {
    write_weights(files, staged / "weights", text);
    return training::TensorChecksums{};
  });
}

/// Whether a process that does `work` was killed before it was done.
bool killed(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status);
}

/// Kills `save` at each of its calls, after `before`, and counts what `left` finds.
void try_all(const char* name, const fs::path& directory, const std::function<void(io::Files&)>& before,
             const std::function<void(io::Files&)>& save, const std::function<std::string()>& left) {
  int calls = 0, old_ones = 0, new_ones = 0;
  for (bool was_killed = true; was_killed;) {
    fs::remove_all(directory);
    fs::create_directories(directory);
    before(io::Files::system());
    ++calls;
    was_killed = killed([&] {
      KilledFiles files(calls);
      save(files);
    });
    const std::string found = left();
    old_ones += was_killed && found == kOld;
    new_ones += was_killed && found == kNew;
  }
  std::printf("%-14s killed %2d times: the old weights %2d, the new ones %d, neither %d\n", name, calls - 1, old_ones,
              new_ones, calls - 1 - old_ones - new_ones);
}

}  // namespace

int main() {
  std::string place = fs::temp_directory_path() / "book_killed-XXXXXX";  // a name that nobody can guess
  if (mkdtemp(place.data()) == nullptr) return std::perror(place.c_str()), 1;
  const fs::path directory = place;
  const fs::path file = directory / "weights";
  try_all(
      "overwritten:", directory, [&](io::Files& files) { write_weights(files, file, kOld); },
      [&](io::Files& files) { write_weights(files, file, kNew); }, [&] { return io::read_file(file); });
  try_all(
      "renamed:", directory, [&](io::Files& files) { save_checkpoint(files, directory, 1, kOld); },
      [&](io::Files& files) { save_checkpoint(files, directory, 2, kNew); },
      [&] {
        std::vector<std::string> skipped;
        const auto newest = training::CheckpointStore(directory).newest(skipped);
        return newest ? io::read_file(newest->directory / "weights") : "";
      });

  fs::remove_all(directory);
  fs::create_directories(directory);
  save_checkpoint(io::Files::system(), directory, 1, kOld);
  std::string rotten = kOld;
  rotten[123] ^= 1;  // one bit, long after it was written
  write_weights(io::Files::system(), directory / "checkpoint-1" / "weights", rotten);
  std::string verdict = training::verify_checkpoint(directory / "checkpoint-1");
  std::printf("one bit changed: %s\n", verdict.c_str());
  fs::remove_all(directory);
}
