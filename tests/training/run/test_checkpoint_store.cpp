#include "training/run/checkpoint_store.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "io/crc32c.h"
#include "io/input_files.h"
#include "io/safetensors.h"
#include "nn/tensor_file.h"
#include "support/faulty_files.h"
#include "support/program.h"
#include "support/refusal.h"
#include "tensor/backends.h"
#include "training/run/run_files.h"

using namespace bertrand;
using namespace bertrand::training;
namespace fs = std::filesystem;
using support::read_text;
using support::write_text;

namespace {

/// A checkpoint of two files, the contents of which say the step.
void save_alone(CheckpointStore& store, io::Files& files, std::int64_t step) {
  store.save(step, 1000, [&](const fs::path& staged) {
    for (const char* name : {"model", "resume.json"}) {
      io::FileWriter out(files, staged / name);
      out.write(fmt::format("{} of ", name));
      out.write(fmt::format("step {}\n", step));
      out.finish();
    }
    return TensorChecksums{{"model/weight", 1u}};
  });
}
/// And removes older ones.
void save(CheckpointStore& store, io::Files& files, std::int64_t step, int keep = 3) {
  save_alone(store, files, step);
  store.remove_old(keep);
}
void save(const fs::path& directory, std::int64_t step, int keep = 3) {
  CheckpointStore store(directory);
  save(store, io::Files::system(), step, keep);
}

std::int64_t newest_step(const fs::path& directory) {
  CheckpointStore store(directory);
  std::vector<std::string> skipped;
  const auto found = store.newest(skipped);
  if (!found) return 0;
  REQUIRE(read_text(found->directory / "model") == fmt::format("model of step {}\n", found->step));
  return found->step;
}

/// The names in a directory, sorted, a space between them.
std::string names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

TEST_CASE("a saved checkpoint verifies, and the newest ones are kept by step, not by name") {
  const support::TemporaryDirectory directory;
  for (const int step : {8, 9, 10, 100}) save(directory / "", step, 2);
  CHECK(names_in(directory / "") == "checkpoint-10 checkpoint-100");
  CHECK(names_in(directory / "checkpoint-10") == "MANIFEST.json model resume.json");
  CHECK(verify_checkpoint(directory / "checkpoint-10") == "");
  CHECK(newest_step(directory / "") == 100);
}

TEST_CASE("what an earlier process of this number left of a checkpoint is no part of the one that it saves") {
  const support::TemporaryDirectory directory;
  const fs::path staged = directory / fmt::format("checkpoint-7.tmp-{}", ::getpid());
  fs::create_directory(staged);
  write_text(staged / "left", "x");
  save(directory / "", 7);
  CHECK(names_in(directory / "checkpoint-7") == "MANIFEST.json model resume.json");
}

TEST_CASE("checkpoints that are all removed go oldest first: a run never goes on from an older one meanwhile") {
  int failing = 0, calls = 0;
  do {
    ++failing;
    CAPTURE(failing);
    const support::TemporaryDirectory directory;
    for (const int step : {8, 9, 10}) save(directory / "", step);
    support::FailingFiles files(failing, "Input/output error");
    CheckpointStore(directory / "", files).remove_all();  // what fails is a warning
    calls = files.calls();
    const std::int64_t newest = newest_step(directory / "");
    CHECK((newest == 10 || newest == 0));
  } while (calls >= failing);
  CHECK(calls >= 6);  // three names and three directories
}

TEST_CASE("a directory without checkpoints has no newest one") {
  const support::TemporaryDirectory directory;
  CHECK(newest_step(directory / "") == 0);
  CHECK(newest_step(directory / "none") == 0);
  fs::create_directory(directory / "checkpoint-x");
  write_text(directory / "checkpoint-7", "a file");
  CHECK(newest_step(directory / "") == 0);
}

TEST_CASE("a manifest whose numbers of bytes are none is damage") {
  const support::TemporaryDirectory directory;
  save(directory / "", 7);
  const fs::path manifest = directory / "checkpoint-7" / "MANIFEST.json";
  std::string text = read_text(manifest);
  text.replace(text.find("\"bytes\": "), std::string_view("\"bytes\": ").size(), "\"bytes\": 1e300, \"was\": ");
  const std::string facts = text.substr(0, text.rfind(",\n \"crc32c\": "));
  write_text(manifest, fmt::format("{},\n \"crc32c\": {}\n}}\n", facts, io::crc32c(facts)));
  CHECK(verify_checkpoint(directory / "checkpoint-7") ==
        "MANIFEST.json: model: bytes: expected a whole number, got 1e+300");
}

TEST_CASE("a manifest that no model needs to be so large is damage, and the checkpoint before it is taken") {
  const support::TemporaryDirectory directory;
  for (const int step : {7, 8}) save(directory / "", step);
  fs::resize_file(directory / "checkpoint-8" / "MANIFEST.json", io::kMostSmallFile + 1);  // takes no room on the disk
  CHECK(verify_checkpoint(directory / "checkpoint-8") ==
        "MANIFEST.json: expected at most 33554432 bytes, got 33554433");
  CHECK(newest_step(directory / "") == 7);
  fs::resize_file(directory / "checkpoint-8" / "MANIFEST.json", io::kMostSmallFile);
  CHECK(verify_checkpoint(directory / "checkpoint-8").starts_with("MANIFEST.json: crc32c: expected "));
}

TEST_CASE("a manifest that vouches for no JSON, or for a file in another place, is damage") {
  const support::TemporaryDirectory directory;
  save(directory / "", 7);
  const fs::path manifest = directory / "checkpoint-7" / "MANIFEST.json";
  const std::string text = read_text(manifest), facts = text.substr(0, text.rfind(",\n \"crc32c\": "));
  const auto is_damage_with = [&](const std::string& other) {  // with a checksum that is right
    write_text(manifest, fmt::format("{},\n \"crc32c\": {}\n}}\n", other, io::crc32c(other)));
    return verify_checkpoint(directory / "checkpoint-7") != "";
  };
  CHECK_FALSE(is_damage_with(facts));
  CHECK(is_damage_with("nonsense"));
  std::string elsewhere = facts;  // where the same file is, so that nothing else is wrong
  elsewhere.replace(elsewhere.find("\"model\""), 7, "\"../checkpoint-7/model\"");
  CHECK(is_damage_with(elsewhere));
}

TEST_CASE("whichever call of a save fails, the older checkpoint stays and one line says what failed") {
  for (const char* reason : {"No space left on device", "Input/output error"}) {
    int calls = 1000;
    for (int failing = 1; failing <= calls; ++failing) {
      CAPTURE(failing);
      const support::TemporaryDirectory directory;
      save(directory / "", 1, 1);
      support::FailingFiles files(failing, reason);
      CheckpointStore store(directory / "", files);
      bool failed = false;
      try {
        save_alone(store, files, 2);
      } catch (const Error& error) {
        failed = true;
        CHECK(error.failure() == Failure::io);
        const std::string line = error.what();
        CHECK(line.find(reason) != std::string::npos);
        CHECK(line.find('\n') == std::string::npos);
        CHECK(line.starts_with((directory / "").string()));
      }
      CHECK(failed == (failing <= files.calls()));
      if (!failed) store.remove_old(1);  // what it cannot remove it leaves
      if (failing > files.calls()) calls = files.calls();
      const std::int64_t newest = newest_step(directory / "");
      CHECK((newest == 1 || newest == 2));
      if (!failed) CHECK(newest == 2);
      // And the next attempt, on a disk that works again, succeeds; what is left is a run's.
      save(directory / "", 3, 1);
      for (const auto& entry : fs::directory_iterator(directory / ""))
        CHECK((entry.path().filename() == "checkpoint-3" || is_temporary(entry.path().filename().string(), {})));
    }
    CHECK(calls > 15);
  }
}

TEST_CASE("an error of a save names the file, the reason and the last checkpoint") {
  const support::TemporaryDirectory directory;
  save(directory / "", 1);
  support::FailingFiles files(4, "No space left on device");  // remove, mkdir, open, then the first write
  CheckpointStore store(directory / "", files);
  const auto staged = directory / fmt::format("checkpoint-2.tmp-{}", ::getpid());
  CHECK_THROWS_WITH_AS(save(store, files, 2),
                       fmt::format("{}/model: write: No space left on device; last checkpoint {}", staged.string(),
                                   (directory / "checkpoint-1").string())
                           .c_str(),
                       Error);
  CHECK_FALSE(fs::exists(staged));
}

TEST_CASE("more than the disk has free is refused before anything is written") {
  const support::TemporaryDirectory directory;
  CheckpointStore store(directory / "");
  const auto fill = [](const fs::path&) -> TensorChecksums {
    FAIL("nothing may be written");
    return {};
  };
  try {
    store.save(1, std::size_t{1} << 62, fill);
    FAIL("expected an error");
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::io);
    CHECK(std::string(error.what()).find("needed 4611686018427387904 bytes, available ") != std::string::npos);
  }
  CHECK(names_in(directory / "") == "");
}

TEST_CASE("power may fail after any call and lose any unsynced part: what was reported saved is there") {
  const support::TemporaryDirectory directory;
  support::RecordingFiles files(directory / "");
  CheckpointStore store(directory / "", files);
  std::vector<std::size_t> saved_after;  // calls made when save(step) had returned
  for (const int step : {1, 2, 3, 4}) {
    save(store, files, step, 2);
    saved_after.push_back(files.calls());
  }
  for (std::size_t calls = 0; calls <= files.calls(); ++calls)
    for (const support::Lost lost :
         {support::Lost::nothing, support::Lost::data, support::Lost::half_of_data, support::Lost::everything}) {
      CAPTURE(calls);
      CAPTURE(static_cast<int>(lost));
      const support::TemporaryDirectory disk;
      files.restore(calls, lost, disk / "");
      const auto promised = std::count_if(saved_after.begin(), saved_after.end(), [&](auto at) { return at <= calls; });
      CHECK(newest_step(disk / "") >= promised);
    }
}

TEST_CASE("every flipped bit of a checkpoint is noticed and the older one is used") {
  const support::TemporaryDirectory directory;
  save(directory / "", 1);
  save(directory / "", 2);
  for (const char* name : {"MANIFEST.json", "model", "resume.json"}) {
    const fs::path file = directory / "checkpoint-2" / name;
    const std::string good = read_text(file);
    for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
      std::string bad = good;
      bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
      write_text(file, bad);
      CAPTURE(name);
      CAPTURE(bit);
      REQUIRE(newest_step(directory / "") == 1);
    }
    for (std::size_t size = 0; size < good.size(); ++size) {
      write_text(file, good.substr(0, size));
      CAPTURE(name);
      CAPTURE(size);
      REQUIRE(newest_step(directory / "") == 1);
    }
    fs::remove(file);
    CHECK(newest_step(directory / "") == 1);
    fs::create_directory(file);
    CHECK(newest_step(directory / "") == 1);
    fs::remove(file);
    write_text(file, good);
    CHECK(newest_step(directory / "") == 2);
  }
}

TEST_CASE("what is wrong with a skipped checkpoint is said, down to the tensor") {
  const support::TemporaryDirectory directory;
  const auto backend = open_cpu({.threads = 1});
  CheckpointStore(directory / "").save(5, 0, [&](const fs::path& staged) {
    io::FileWriter out(io::Files::system(), staged / "model.safetensors");
    Tensor weight({4}, DType::f32, *backend), bias({4}, DType::f32, *backend);
    for (const Tensor& t : {weight, bias}) std::fill(t.span<float>().begin(), t.span<float>().end(), 1.5f);
    TensorChecksums checksums;
    for (const auto& [name, crc] : nn::write_tensors(out, {{"weight", weight}, {"bias", bias}}))
      checksums["model.safetensors/" + name] = crc;
    out.finish();
    return checksums;
  });
  const fs::path file = directory / "checkpoint-5/model.safetensors";
  std::string bytes = read_text(file);
  const std::string good = bytes;
  bytes.back() = 'x';
  write_text(file, bytes);
  CheckpointStore store(directory / "");
  std::vector<std::string> skipped;
  CHECK_FALSE(store.newest(skipped).has_value());
  REQUIRE(skipped.size() == 1);
  CHECK(skipped[0].starts_with("checkpoint-5: model.safetensors: tensor \"weight\": crc32c: expected 0x"));

  write_text(file, good.substr(0, 50));
  CHECK(verify_checkpoint(directory / "checkpoint-5") ==
        fmt::format("model.safetensors: expected {} bytes, got 50", good.size()));
  fs::remove(file);
  CHECK(verify_checkpoint(directory / "checkpoint-5") == "model.safetensors is not there");
  write_text(file, good);
  fs::rename(directory / "checkpoint-5", directory / "checkpoint-6");
  CHECK(verify_checkpoint(directory / "checkpoint-6") == "MANIFEST.json: step: another than the directory's name says");
}

TEST_CASE("a checkpoint that cannot be read, or that another version wrote, is not taken for a damaged one") {
  const support::TemporaryDirectory directory;
  for (const int step : {1, 2}) save(directory / "", step);
  const fs::path file = directory / "checkpoint-2/model", manifest = directory / "checkpoint-2/MANIFEST.json";
  const std::string model = read_text(file), facts = read_text(manifest);
  const auto newest = [&] { newest_step(directory / ""); };

  fs::remove(file);
  fs::create_symlink(file, file);  // a loop: as unreadable as on a network that is gone, for root too
  const std::string unreadable = support::refusal(Failure::io, newest);
  CHECK(unreadable.find("checkpoint-2/model: Too many levels of symbolic links; hint: ") != std::string::npos);
  fs::remove(file);
  fs::create_symlink("/proc/self/mem", file);  // is there, and the system refuses to read it
  std::string empty = facts.substr(0, facts.rfind(",\n \"crc32c\""));
  empty.replace(empty.find("\"bytes\": "), empty.find(',', empty.find("\"bytes\": ")) - empty.find("\"bytes\": "),
                "\"bytes\": 0");
  write_text(manifest, fmt::format("{},\n \"crc32c\": {}\n}}\n", empty, io::crc32c(empty)));
  const std::string refused = support::refusal(Failure::io, newest);
  CHECK(refused == fmt::format("{}: read: Input/output error; hint: make it readable, or if it is lost, move {} away",
                               file.string(), (directory / "checkpoint-2").string()));
  fs::remove(file);
  write_text(file, model);

  std::string newer = facts.substr(0, facts.rfind(",\n \"crc32c\""));
  newer.replace(newer.find("\"format_version\": 1"), 19, "\"format_version\": 2");
  write_text(manifest, fmt::format("{},\n \"crc32c\": {}\n}}\n", newer, io::crc32c(newer)));
  CHECK(support::refusal(Failure::model, newest).find("format_version: expected 1, got 2; hint: ") !=
        std::string::npos);
  write_text(manifest, facts);
  CHECK(newest_step(directory / "") == 2);
}

TEST_CASE("a damaged checkpoint is not named as the last one") {
  const support::TemporaryDirectory directory;
  for (const int step : {1, 2}) save(directory / "", step);
  write_text(directory / "checkpoint-2/model", "damaged");
  support::FailingFiles files(4, "No space left on device");
  CheckpointStore store(directory / "", files);
  std::vector<std::string> skipped;
  REQUIRE(store.newest(skipped)->step == 1);
  const std::string line = support::refusal(Failure::io, [&] { save(store, files, 3); });
  CHECK(line.ends_with("last checkpoint " + (directory / "checkpoint-1").string()));
}

TEST_CASE("a damaged checkpoint does not count among those kept, and the next save removes it") {
  const support::TemporaryDirectory directory;
  for (const int step : {10, 20, 30}) save(directory / "", step);
  write_text(directory / "checkpoint-30/model", "rotten");
  CheckpointStore store(directory / "");
  std::vector<std::string> skipped;
  REQUIRE(store.newest(skipped)->step == 20);
  save(store, io::Files::system(), 25, 2);
  CHECK(names_in(directory / "") == "checkpoint-20 checkpoint-25");
}

TEST_CASE("a damaged checkpoint of the same step is replaced") {
  const support::TemporaryDirectory directory;
  for (const int step : {10, 20}) save(directory / "", step);
  write_text(directory / "checkpoint-20/model", "rotten");
  CheckpointStore store(directory / "");
  std::vector<std::string> skipped;
  REQUIRE(store.newest(skipped)->step == 10);
  save(store, io::Files::system(), 20);
  CHECK(names_in(directory / "") == "checkpoint-10 checkpoint-20");
  CHECK(newest_step(directory / "") == 20);
}

TEST_CASE("a directory of another program that has a checkpoint's name is neither read nor removed") {
  const support::TemporaryDirectory directory;
  save(directory / "", 10);
  fs::create_directory(directory / "checkpoint-500");
  write_text(directory / "checkpoint-500/model.safetensors", "precious");
  CheckpointStore store(directory / "");
  std::vector<std::string> skipped;
  CHECK(store.newest(skipped)->step == 10);
  CHECK(skipped.empty());
  save(store, io::Files::system(), 20, 1);
  CHECK(names_in(directory / "") == "checkpoint-20 checkpoint-500");
  const std::string line = support::refusal(Failure::io, [&] { save(store, io::Files::system(), 500, 1); });
  CHECK(line == (directory / "checkpoint-500").string() +
                    ": expected nothing or a checkpoint of this program, got something else; hint: move it away; last "
                    "checkpoint " +
                    (directory / "checkpoint-20").string());
  CHECK(read_text(directory / "checkpoint-500/model.safetensors") == "precious");
}
