#include "io/machine.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace bertrand::io {

std::string host_name() {
  char name[256] = {};  // Linux allows 64 characters
  if (::gethostname(name, sizeof name) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (const std::size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
      return line.substr(colon + 2);
  return "";
}

std::uint64_t memory_bytes() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGESIZE);
  return static_cast<std::uint64_t>(std::max(pages, 0L)) * static_cast<std::uint64_t>(bytes);
}

std::size_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  in >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace bertrand::io
