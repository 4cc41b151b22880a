// A table in the form of LevelDB. What was read is written and read again.
#include <algorithm>

#include "fuzz/io/tables.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string table = fuzz::table_of(fuzz::text_of(data, size));
  fuzz::read_or_refuse([&] {
    const auto entries = io::parse_table(table, "t");
    const auto again = io::parse_table(io::table_bytes(entries, 64), "again");
    const auto same = [](const auto& a, const auto& b) { return a.key == b.key && a.value == b.value; };
    fuzz::require(std::ranges::equal(entries, again, same), "the same entries");
  });
  return 0;
}
