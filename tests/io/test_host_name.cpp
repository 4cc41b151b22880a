// What the machine and this process say of themselves.
#include "io/host_name.h"

#include <doctest/doctest.h>

#include <vector>

using namespace bertrand::io;

TEST_CASE("the resident memory of a process grows when it takes more, and is less than the machine's") {
  const std::size_t before = resident_bytes();
  CHECK(memory_bytes() > std::size_t{64} << 20);
  CHECK(before > std::size_t{1} << 20);
  CHECK(before < memory_bytes());
  const std::vector<char> more(std::size_t{64} << 20, 1);
  CHECK(resident_bytes() > before + more.size() / 2);
}

TEST_CASE("the name of the processor is its name alone") {
  CHECK(processor_name().find(": ") == std::string::npos);
  CHECK_FALSE(host_name().empty());
}
