#include "training/run/run_directory.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "io/input_files.h"
#include "io/temporary_name.h"
#include "support/faulty_files.h"
#include "support/program.h"
#include "support/refusal.h"
#include "training/run/run_files.h"

using namespace bertrand;
using namespace bertrand::training;
using support::write_text;
namespace fs = std::filesystem;

namespace {

const ProgramFiles kFiles = {.model = {"config.json", "vocab.txt"},
                             .results = {"predictions.tsv"},
                             .pages = {"report.html"},
                             .kept = {"predictions.partial"}};

std::string refusal(const fs::path& path, ExistingRun existing) {
  return support::refusal(Failure::usage, [&] { const RunDirectory directory(path, existing, kFiles); });
}

/// What --resume says of a run without a checkpoint, or "".
std::string refusal_to_begin_anew(const fs::path& path) {
  const RunDirectory directory(path, ExistingRun::resume, kFiles);
  return support::refusal(Failure::usage, [&] { directory.refuse_results(); });
}

void write_run(const fs::path& path) {
  fs::create_directories(path / "checkpoint-10");
  for (const char* name :
       {"checkpoint-10/MANIFEST.json", "model.safetensors", "metrics.jsonl", "events.out.tfevents.1.h.2"})
    write_text(path / name, "x");
  write_text(path / "run_config.json", R"({"program": "pretrain", "settings": {}})");
}

}  // namespace

TEST_CASE("a run directory is created with those it lies in, and its lock goes away with it") {
  const support::TemporaryDirectory parent;
  {
    const RunDirectory directory(parent / "a/b/run", ExistingRun::refuse);
    CHECK(directory.path() == parent / "a/b/run");
    CHECK(support::read_text(parent / "a/b/run/.lock").starts_with(std::to_string(::getpid()) + " on host "));
    write_text(directory.path() / "metrics.jsonl", "x");
  }
  CHECK_FALSE(fs::exists(parent / "a/b/run/.lock"));
  CHECK(fs::exists(parent / "a/b/run/metrics.jsonl"));
}

TEST_CASE("a run that ends before it wrote anything leaves no directory that was not there") {
  const support::TemporaryDirectory parent;
  fs::create_directory(parent / "a");
  CHECK(refusal(parent / "a/b/run/", ExistingRun::refuse) == "");
  CHECK(fs::is_empty(parent / "a"));
  fs::create_directory(parent / "a/run");
  CHECK(refusal(parent / "a/run", ExistingRun::refuse) == "");
  CHECK(fs::is_empty(parent / "a/run"));
}

TEST_CASE("a new run directory is durable before anything is saved in it") {
  const support::TemporaryDirectory parent;
  support::RecordingFiles files(parent / "");
  const RunDirectory directory(parent / "a/run", ExistingRun::refuse, kFiles, files);
  const support::TemporaryDirectory disk;
  files.restore(files.calls(), support::Lost::everything, disk / "");
  CHECK(fs::is_directory(disk / "a/run"));
}

TEST_CASE("a directory that holds a run is refused, resumed or overwritten as asked") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  write_run(path);
  write_text(path / "notes.txt", "mine");
  CHECK(refusal(path, ExistingRun::refuse) ==
        path.string() +
            ": expected no run there, got checkpoint-10; hint: --resume goes on with it, --overwrite removes it");
  CHECK_FALSE(fs::exists(path / ".lock"));

  CHECK(refusal(path, ExistingRun::resume) == "");
  CHECK(fs::exists(path / "checkpoint-10"));

  CHECK(refusal(path, ExistingRun::overwrite) == "");
  CHECK(fs::exists(path / "checkpoint-10"));  // it goes when there is something to put in its place
  RunDirectory(path, ExistingRun::overwrite, kFiles).clear();
  CHECK_FALSE(fs::exists(path / "checkpoint-10"));
  CHECK_FALSE(fs::exists(path / "model.safetensors"));
  CHECK(support::read_text(path / "notes.txt") == "mine");
}

TEST_CASE("--resume is named only where there is something that it goes on with") {
  for (const char* const file :
       {"eval_results.json", "predictions.tsv", "run_config.json", "ended.json", "predictions.partial"}) {
    const support::TemporaryDirectory path;
    write_text(path / file, R"({"program": "finetune", "settings": {}})");
    const bool goes_on = file == std::string("ended.json") || file == std::string("predictions.partial");
    CHECK(refusal(path / "", ExistingRun::refuse)
              .ends_with(fmt::format("expected no run there, got {}; hint: {}--overwrite removes it", file,
                                     goes_on ? "--resume goes on with it, " : "")));
  }
  const support::TemporaryDirectory before_its_first_checkpoint;
  write_text(before_its_first_checkpoint / "run_config.json",
             R"({"program": "finetune", "settings": {}, "ended": false})");
  CHECK(refusal(before_its_first_checkpoint / "", ExistingRun::refuse)
            .ends_with("hint: --resume goes on with it, --overwrite removes it"));
}

TEST_CASE("only what a run wrote is removed with it, and never what the next one reads") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  write_run(path);
  for (const char* mine : {"checkpoint-notes.md", "x.tmp-data", "notes.tmp-17", "notes.old.tmp-17", "model",
                           "config.json.old", "checkpoint-5.old", "a"})
    write_text(path / mine, "mine");
  for (const char* left : {"checkpoint-20.tmp-17", "checkpoint-5.old.tmp-17", "model.tmp-17", "predictions.tsv.tmp-17"})
    write_text(path / left, "left");
  {
    RunDirectory directory(path, ExistingRun::overwrite, kFiles);
    fs::create_symlink(path / "checkpoint-10", parent / "link");
    for (const fs::path& input : {path / "checkpoint-10", path / "checkpoint-10/vocab.txt", path / "model.safetensors",
                                  path / "../run/metrics.jsonl", parent / "link", path, parent / "run/."})
      CHECK_THROWS_WITH(directory.require_kept({"", parent / "data.txt", input}),
                        (path.string() + ": --overwrite: expected input outside the run that it removes, got " +
                         input.string() + "; hint: name another --output")
                            .c_str());
    directory.require_kept({path / "checkpoint-notes.md", parent / "data.txt", "", parent / "run2"});
    directory.clear();
  }
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(path)) kept.push_back(entry.path().filename());
  std::sort(kept.begin(), kept.end());
  CHECK(kept == std::vector<std::string>{"a", "checkpoint-5.old", "checkpoint-notes.md", "config.json.old", "model",
                                         "notes.old.tmp-17", "notes.tmp-17", "x.tmp-data"});
}

TEST_CASE("leftovers of killed runs are removed from whichever host they are, and no page that is being written") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  write_run(path);
  for (const std::string& writer : {std::string("1"), std::string("99999999999"), std::to_string(::getpid())})
    fs::create_directory(path / ("checkpoint-20.tmp-" + writer));
  fs::create_directory(path / "checkpoint-20.tmp-12x");
  for (const char* left : {"predictions.tsv.tmp-ahost-1", "config.json.tmp-another-host-1", "model.tmp-1"})
    write_text(path / left, "left");
  write_text(path / "notes.txt.tmp-1", "mine");
  const io::TemporaryName page(path / "report.html", [](const fs::path& name) { write_text(name, "half"); });
  RunDirectory(path, ExistingRun::resume, kFiles).remove_leftovers();
  std::set<std::string> kept;
  for (const auto& entry : fs::directory_iterator(path)) kept.insert(entry.path().filename());
  CHECK(kept == std::set<std::string>{"checkpoint-10", "checkpoint-20.tmp-12x", "events.out.tfevents.1.h.2",
                                      "metrics.jsonl", "model.safetensors", "notes.txt.tmp-1",
                                      page.path().filename().string(), "run_config.json"});
}

TEST_CASE("a leftover that cannot be removed does not keep a run from going on") {
  const support::TemporaryDirectory parent;
  write_run(parent / "run");
  for (const char* left : {"run/checkpoint-5.old.tmp-1", "run/checkpoint-20.tmp-1"})
    fs::create_directory(parent / left);
  support::FailingFiles files(1, "Directory not empty");  // as on NFS, where somebody has a file of it open
  RunDirectory(parent / "run", ExistingRun::resume, kFiles, files).remove_leftovers();
  CHECK(files.calls() == 2);  // the other one was removed
}

TEST_CASE("a run that came to something without a checkpoint is not begun anew") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  fs::create_directory(path);
  const auto refused = [&] { return refusal_to_begin_anew(path); };
  for (const char* name : {"run_config.json", "metrics.jsonl", "report.html"})
    write_text(path / name, R"({"program": "pretrain", "settings": {}})");
  CHECK(refused() == "");
  for (const char* name : {"predictions.tsv", "eval_results.txt", "model.safetensors"}) {
    write_text(path / name, "x");
    CHECK(refused() == path.string() + ": --resume: expected a checkpoint to go on from, got none beside " + name +
                           "; hint: --overwrite removes that run, or name another --output");
    fs::remove(path / name);
  }
  write_text(path / "ended.json", "x");
  CHECK(refused() == path.string() +
                         ": --resume: expected a checkpoint to go on from, got none, as the run ended with "
                         "--save-model-only; hint: its model can begin another run: --model " +
                         path.string() + " for finetune, --init for pretrain");
}

TEST_CASE("a run without a checkpoint can be begun anew if its record says that it did not come to its end") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  fs::create_directory(path);
  const auto refused = [&](const std::string& ended) {
    write_text(path / "run_config.json", R"({"program": "finetune", "settings": {})" + ended + "}");
    return !refusal_to_begin_anew(path).empty();
  };
  const std::string yes = R"(, "ended": true)", no = R"(, "ended": false)";
  for (const std::string& ended : {std::string(), yes, no}) CHECK_FALSE(refused(ended));  // it came to nothing yet
  write_text(path / "model.safetensors", "x");
  CHECK(refused(""));  // an older version wrote it
  CHECK(refused(yes));
  CHECK_FALSE(refused(no));
  write_text(path / "eval_results.json", "{}");
  CHECK(refused(no));  // it was to become longer
  fs::rename(path / "eval_results.json", path / "ended.json");
  CHECK(refused(no));  // killed between the two
}

TEST_CASE("a removal of a run that is interrupted anywhere can be begun again") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  for (int failing = 1; failing <= 7; ++failing) {  // the last is that of run_config.json
    write_run(path);
    write_text(path / "vocab.txt", "x");
    {
      support::FailingFiles files(failing, "No space left on device");
      RunDirectory directory(path, ExistingRun::overwrite, kFiles, files);
      CHECK_THROWS_AS(directory.clear(), Error);
    }
    CAPTURE(failing);
    CHECK(refusal(path, ExistingRun::overwrite) == "");
  }
  RunDirectory(path, ExistingRun::overwrite, kFiles).clear();
  CHECK(fs::is_empty(path));
}

namespace {

/// Is killed when it has removed the first files of a directory.
class HalfRemoving : public io::Files {
 public:
  void remove_all(const fs::path& path) override {
    if (!fs::is_directory(path)) return Files::remove_all(path);
    for (const char* file : {kManifest, kStateFile}) fs::remove(path / file);
    fail(Failure::io, "killed");
  }
};

}  // namespace

TEST_CASE("a checkpoint of which a removal left a half is not in the way of the next run") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  write_run(path);
  write_text(path / "checkpoint-10/model.safetensors", "x");
  {
    HalfRemoving files;
    RunDirectory directory(path, ExistingRun::overwrite, kFiles, files);
    CHECK_THROWS_AS(directory.clear(), Error);
  }
  CHECK(refusal(path, ExistingRun::overwrite) == "");
  RunDirectory(path, ExistingRun::overwrite, kFiles).clear();
  CHECK(fs::is_empty(path));
}

TEST_CASE("a model that no run wrote is never overwritten") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "bert";
  fs::create_directory(path);
  write_text(path / "model.safetensors", "precious");
  for (const ExistingRun existing : {ExistingRun::refuse, ExistingRun::resume, ExistingRun::overwrite})
    CHECK(refusal(path, existing) ==
          path.string() +
              ": expected a run of this program or none, got model.safetensors, which no such run wrote; "
              "hint: name another --output");
  CHECK(support::read_text(path / "model.safetensors") == "precious");
}

TEST_CASE("the output directory of another trainer is refused and keeps all it has") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "theirs";
  for (const char* checkpoint : {"checkpoint-500", "checkpoint-1000"}) {
    fs::create_directories(path / checkpoint);
    write_text(path / checkpoint / "model.safetensors", "precious");
  }
  const auto check_refused = [&] {
    for (const ExistingRun existing : {ExistingRun::refuse, ExistingRun::resume, ExistingRun::overwrite})
      CHECK(refusal(path, existing).find("which no such run wrote; hint: name another --output") != std::string::npos);
    CHECK(support::read_text(path / "checkpoint-500/model.safetensors") == "precious");
  };
  check_refused();
  write_text(path / "config.json", "{}");
  write_text(path / "model.safetensors", "precious");
  check_refused();
  write_text(path / "run_config.json", "{\"learning_rate\": 1}");
  check_refused();
}

TEST_CASE("a run_config.json that no run needs to be so large is of another program") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  fs::create_directories(path);
  const std::string config = R"({"program": "pretrain", "settings": {}})";
  write_text(path / "run_config.json", config + std::string(io::kMostSmallFile - config.size(), ' '));
  CHECK(is_own_run_config(path / "run_config.json"));
  write_text(path / "run_config.json", config + std::string(io::kMostSmallFile - config.size() + 1, ' '));
  CHECK_FALSE(is_own_run_config(path / "run_config.json"));
  CHECK(refusal(path, ExistingRun::overwrite).find("got run_config.json, which no such run wrote") !=
        std::string::npos);
}

TEST_CASE("a checkpoint of another program beside a run stays if the run is overwritten") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  write_run(path);
  fs::create_directories(path / "checkpoint-500");
  write_text(path / "checkpoint-500/model.safetensors", "precious");
  RunDirectory(path, ExistingRun::overwrite, kFiles).clear();
  CHECK_FALSE(fs::exists(path / "checkpoint-10"));
  CHECK(support::read_text(path / "checkpoint-500/model.safetensors") == "precious");
}

TEST_CASE("a link in the place of the lock is not followed") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  fs::create_directories(path);
  write_text(parent / "diary", "precious");
  fs::create_symlink(parent / "diary", path / ".lock");
  CHECK(support::refusal(Failure::io, [&] { const RunDirectory directory(path, ExistingRun::refuse); }) ==
        (path / ".lock").string() + ": open: Too many levels of symbolic links");
  CHECK(support::read_text(parent / "diary") == "precious");
}

TEST_CASE("a directory that another living process writes to is refused by its number and host") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  const RunDirectory first(path, ExistingRun::refuse);
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  CHECK(refusal(path, ExistingRun::overwrite) ==
        fmt::format("{}: output directory in use by process {} on host {}; hint: wait for it, or name another --output",
                    path.string(), ::getpid(), host));
  CHECK(fs::exists(path / ".lock"));
}

TEST_CASE("who has locked a directory and did not yet write who it is is unknown") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  fs::create_directories(path);
  const io::Descriptor lock(::open((path / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  REQUIRE(::flock(lock.number(), LOCK_EX) == 0);
  CHECK(
      refusal(path, ExistingRun::refuse).starts_with(path.string() + ": output directory in use by process unknown; "));
}

TEST_CASE("a killed process leaves no lock") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  const pid_t child = ::fork();
  if (child == 0) {
    const RunDirectory directory(path, ExistingRun::refuse);
    ::raise(SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(fs::exists(path / ".lock"));
  CHECK(refusal(path, ExistingRun::refuse) == "");
}

TEST_CASE("an --output that is a file, or is not given, is refused") {
  const support::TemporaryDirectory parent;
  write_text(parent / "file", "");
  CHECK(refusal(parent / "file", ExistingRun::refuse) ==
        "--output: expected a directory, got the file " + (parent / "file").string());
  fs::create_symlink("nothing", parent / "link");
  CHECK(refusal(parent / "link", ExistingRun::refuse) ==
        "--output: expected a directory, got the link to nothing " + (parent / "link").string());
  fs::create_symlink("loop", parent / "loop");
  CHECK(refusal(parent / "loop", ExistingRun::refuse) ==
        "--output: expected a directory, got the link to nothing " + (parent / "loop").string());
  CHECK(refusal("", ExistingRun::refuse) == "--output: expected a directory, got none");
}

TEST_CASE("a plan claims no directory, and a rehearsal one that is named") {
  const support::TemporaryDirectory parent;
  const fs::path path = parent / "run";
  write_run(path);
  Settings settings;
  const auto claims = [&] { return claim_output(settings, {}, kFiles) != nullptr; };
  settings.output = path;
  settings.plan_only = true;
  CHECK_FALSE(claims());
  settings.plan_only = false;
  settings.dry_run = true;
  CHECK(support::refusal(Failure::usage, claims) != "");
  settings.output = parent / "other";
  CHECK(claims());
  settings.output.clear();
  CHECK_FALSE(claims());
}
