// JSON. What was read is written and read again.
#include "io/json.h"

#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::read_or_refuse([&] {
    const io::Json json = io::parse_json(fuzz::text_of(data, size), {.name = "j"});
    fuzz::require(io::parse_json(io::json_text(json), {.name = "again"}) == json, "the same value");
    fuzz::require(io::shown(json).size() < 64, "a short text for messages");
  });
  return 0;
}
