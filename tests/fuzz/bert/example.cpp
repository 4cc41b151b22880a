// tf.Example. What was read is written and read again; a NaN is not equal to itself, so bytes are compared.
#include "fuzz/fuzz.h"
#include "support/tf_example.h"

using bertrand::data::parse_example, support::serialize_example;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::read_or_refuse([&] {
    const std::string written = serialize_example(parse_example(fuzz::text_of(data, size), "e"));
    fuzz::require(serialize_example(parse_example(written, "again")) == written, "the same example");
  });
  return 0;
}
