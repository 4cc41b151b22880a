// UTF-8 checked byte by byte.
#include "bert/text/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace bertrand::text {
namespace {

struct Sequence {
  std::size_t length;  // bytes of the sequence, or of the invalid beginning of one
  bool valid;
};

// Table 3-7 of the Unicode standard: which second bytes may follow a leading byte.
Sequence next_sequence(const unsigned char* p, const unsigned char* end) {
  const unsigned char lead = *p;
  if (lead < 0x80) return {1, true};
  if (lead < 0xC2 || lead > 0xF4) return {1, false};
  const std::size_t wanted = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const unsigned char lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (p + 1 == end || p[1] < lowest || p[1] > highest) return {1, false};
  for (std::size_t i = 2; i < wanted; ++i) {
    if (p + i == end || (p[i] & 0xC0) != 0x80) return {i, false};
  }
  return {wanted, true};
}

}  // namespace

std::int64_t count_code_points(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

bool is_ascii(std::string_view text) {
  const char* p = text.data();
  std::size_t n = text.size();
  std::uint64_t seen = 0;
  for (; n >= 8; p += 8, n -= 8) {  // for speed alone eight at a time
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    seen |= word;
  }
  for (; n > 0; ++p, --n) seen |= static_cast<unsigned char>(*p) & 0x80;
  return (seen & 0x8080808080808080) == 0;
}

DroppedBytes drop_invalid_utf8(std::string_view text, std::string& valid, std::vector<std::size_t>* gaps) {
  const auto* begin = reinterpret_cast<const unsigned char*>(text.data());
  const auto* end = begin + text.size();
  const auto* kept_from = begin;  // what is valid and not yet copied starts here
  DroppedBytes dropped;
  for (const auto* p = begin; p < end;) {
    const Sequence sequence = next_sequence(p, end);
    if (!sequence.valid) {
      if (dropped.count == 0) {
        dropped.first = static_cast<std::size_t>(p - begin);
        valid.clear();
      }
      dropped.count += sequence.length;
      valid.append(reinterpret_cast<const char*>(kept_from), static_cast<std::size_t>(p - kept_from));
      kept_from = p + sequence.length;
      if (gaps && (gaps->empty() || gaps->back() != valid.size())) gaps->push_back(valid.size());
    }
    p += sequence.length;
  }
  if (dropped.count > 0) {
    valid.append(reinterpret_cast<const char*>(kept_from), static_cast<std::size_t>(end - kept_from));
  }
  return dropped;
}

InvalidBytes drop_invalid_lines(std::string_view text, std::string& valid, std::vector<std::size_t>* gaps) {
  const DroppedBytes dropped = drop_invalid_utf8(text, valid, gaps);
  const std::string_view before = text.substr(0, dropped.first);
  return {.count = dropped.count,
          .first_line = 1 + static_cast<std::uint64_t>(std::ranges::count(before, '\n')),
          .first_column = before.size() - (before.rfind('\n') + 1) + 1};
}

bool has_gap(std::span<const std::size_t> gaps, std::size_t begin, std::size_t end) {
  const auto gap = std::ranges::lower_bound(gaps, begin);
  return gap != gaps.end() && *gap <= end;
}

void InvalidBytes::add(const DroppedBytes& dropped, std::uint64_t line) {
  add(InvalidBytes{.count = dropped.count, .first_line = line, .first_column = dropped.first + 1}, 0);
}

void InvalidBytes::add(const InvalidBytes& part, std::uint64_t lines_before) {
  if (count == 0 && part.count > 0) {
    first_line = lines_before + part.first_line;
    first_column = part.first_column;
  }
  count += part.count;
}

std::string InvalidBytes::message(const std::string& file, std::string_view verb) const {
  return fmt::format(
      "{}:{}: text: {} {} byte{} that {} not UTF-8, the first one in column {}; hint: iconv turns other encodings into "
      "UTF-8",
      file, first_line, verb, count, count == 1 ? "" : "s", count == 1 ? "is" : "are", first_column);
}

}  // namespace bertrand::text
