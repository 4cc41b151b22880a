// The index of a checkpoint of TensorFlow. What was read is written, and then its bytes stay as they are.
#include "fuzz/io/tables.h"
#include "io/tensor_bundle.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string table = fuzz::table_of_entries(fuzz::text_of(data, size));
  fuzz::read_or_refuse([&] {
    const std::string written = io::bundle_index_bytes(io::parse_bundle_index(table, "i"));
    fuzz::require(io::bundle_index_bytes(io::parse_bundle_index(written, "again")) == written, "the same bytes");
  });
  return 0;
}
