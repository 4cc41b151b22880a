// This machine, for records of what was run where.
#pragma once
#include <cstdint>
#include <string>

namespace bertrand::io {

/// As gethostname tells it; "localhost" if it tells none.
std::string host_name();
/// "Intel(R) Xeon(R) …", as /proc/cpuinfo tells it; "" if it tells none.
std::string processor_name();
/// The memory of the whole machine.
std::uint64_t memory_bytes();

}  // namespace bertrand::io
