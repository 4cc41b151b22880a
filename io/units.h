// Durations, counts and bytes as people read them.
#pragma once
#include <cstddef>
#include <string>

namespace bertrand::io {

/// "59s", "12:05" or "2:14:05"
std::string duration_text(double seconds);
/// "950", "12.3k", "4.56M"
std::string count_text(double count);
/// The bytes that "8GiB", "500MB", "1.5 TB" or "1048576" are. Throws Error(Failure::usage) naming the flag for another
/// text, and for less than one.
std::size_t parse_bytes(const std::string& flag, const std::string& text);
/// "512 B", "1.76 GB" (powers of ten)
std::string bytes_text(double bytes);

}  // namespace bertrand::io
