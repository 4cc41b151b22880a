// The manifest of a checkpoint, whose own checksum is made right, and the file that says where a run stands: each is
// what stands before and behind the first NUL.
#include "fuzz/fuzz.h"
#include "io/crc32c.h"
#include "io/json.h"
#include "training/run/checkpoint_store.h"
#include "training/run/run_state.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  const std::string_view text = fuzz::text_of(data, size), facts = text.substr(0, text.find('\0')),
                         state = text.substr(std::min(size, facts.size() + 1));
  const auto checkpoint = directory.path() / "checkpoint-7";
  std::filesystem::create_directory(checkpoint);
  directory.write("checkpoint-7/MANIFEST.json", fmt::format("{},\n \"crc32c\": {}\n}}\n", facts, io::crc32c(facts)));
  directory.write("checkpoint-7/resume.json", state);
  fuzz::read_or_refuse([&] { training::verify_checkpoint(checkpoint); });
  fuzz::read_or_refuse([&] {
    const io::Json json = io::read_json(checkpoint / "resume.json");
    const auto conditions = training::parse_conditions(json, "resume.json");
    const std::string written = io::json_text(training::parse_run_state(json, "resume.json").to_json(conditions));
    const io::Json again = io::parse_json(written, {.name = "again"});
    fuzz::require(
        io::json_text(training::parse_run_state(again, "again").to_json(training::parse_conditions(again, "again"))) ==
            written,
        "the same state");
  });
  return 0;
}
