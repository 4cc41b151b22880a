// Durations, counts and bytes as people read them.
#pragma once
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

namespace bertrand::io {

/// "59s", "12:05" or "2:14:05"
std::string duration_text(double seconds);
/// "1 step", "2 steps", "2 batches", "2 queries"; `thing` is a word whose plural is made so.
std::string counted(std::integral auto count, std::string_view thing) {
  const bool is_one = count == 1, ends_in_y = thing.ends_with('y');
  if (!is_one && ends_in_y) thing.remove_suffix(1);
  const char* const ending = is_one ? "" : ends_in_y ? "ies" : thing.ends_with("ch") ? "es" : "s";
  return std::to_string(count).append(" ").append(thing).append(ending);
}
/// "950", "12.3k", "4.56M"
std::string count_text(double count);
/// The bytes that "8GiB", "500MB", "1.5 TB" or "1048576" are. Throws Error(Failure::usage) naming the flag for another
/// text, and for less than one.
std::size_t parse_bytes(const std::string& flag, const std::string& text);
/// "512 B", "1.76 GB" (powers of ten)
std::string bytes_text(double bytes);

}  // namespace bertrand::io
