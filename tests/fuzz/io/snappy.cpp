// Snappy's raw format.
#include "io/snappy.h"

#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kMost = 1 << 20;
  fuzz::read_or_refuse([&] {
    const std::string bytes = io::decompress_snappy(fuzz::text_of(data, size), kMost, "s", Failure::model);
    fuzz::require(bytes.size() <= kMost && bytes.size() <= 64 * size, "no more than the format can hold");
  });
  return 0;
}
