// This machine and this process, for records of what was run where and for plans of memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace bertrand::io {

/// As gethostname tells it; "localhost" if it tells none.
std::string host_name();
/// "Intel(R) Xeon(R) …", as /proc/cpuinfo tells it; "" if it tells none.
std::string processor_name();
/// The memory of the whole machine.
std::uint64_t memory_bytes();
/// The memory of this process that is in use, the files it maps too; 0 if the system does not tell.
std::size_t resident_bytes();

}  // namespace bertrand::io
