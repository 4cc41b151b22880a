// Durations, counts and bytes as people read them.
#pragma once
#include <string>

namespace bertrand::io {

/// "59s", "12:05" or "2:14:05"
std::string duration_text(double seconds);
/// "950", "12.3k", "4.56M"
std::string count_text(double count);
/// "512 B", "1.76 GB" (powers of ten)
std::string bytes_text(double bytes);

}  // namespace bertrand::io
