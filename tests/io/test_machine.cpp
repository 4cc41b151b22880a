// What the machine and this process say of themselves.
#include "io/machine.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
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
  std::ifstream file("/proc/cpuinfo");
  const std::string all{std::istreambuf_iterator<char>(file), {}}, key = "\nmodel name\t: ";
  const std::size_t at = all.find(key);
  CHECK(processor_name() ==
        (at == std::string::npos ? "" : all.substr(at + key.size(), all.find('\n', at + 1) - at - key.size())));
}

TEST_CASE("the name of the host is the system's") {
  char name[256] = {};
  REQUIRE(::gethostname(name, sizeof name) == 0);
  if (name[0] != '\0') CHECK(host_name() == name);
}
