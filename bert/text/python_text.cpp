#include "bert/text/python_text.h"

#include <utf8proc.h>

#include "bert/text/unicode.h"
#include "bert/text/utf8.h"

namespace bertrand::text {

std::u32string to_code_points(std::string_view utf8) {
  std::u32string text;
  text.reserve(utf8.size());
  for (const char *p = utf8.data(), *end = p + utf8.size(); p < end;) text.push_back(decode_utf8(p));
  return text;
}

std::string to_utf8(std::u32string_view code_points) {
  std::string text(4 * code_points.size(), '\0');
  char* end = text.data();
  for (const char32_t c : code_points) end = encode_utf8(c, end);
  text.resize(static_cast<std::size_t>(end - text.data()));
  return text;
}

bool is_python_space(char32_t c) {
  return (9 <= c && c <= 13) || (28 <= c && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (0x2000 <= c && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_python_word(char32_t c) {
  if (c < 128) return ('0' <= c && c <= '9') || ('A' <= c && c <= 'Z') || ('a' <= c && c <= 'z') || c == '_';
  if (!UnicodeTable::is_assigned(c)) return false;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return (UTF8PROC_CATEGORY_LU <= category && category <= UTF8PROC_CATEGORY_LO) ||
         (UTF8PROC_CATEGORY_ND <= category && category <= UTF8PROC_CATEGORY_NO);
}

void python_lower(std::u32string& text) { UnicodeTable::get().lower(text); }

std::vector<std::u32string> python_split(std::u32string_view text) {
  std::vector<std::u32string> words;
  for (std::size_t i = 0; i < text.size();) {
    if (is_python_space(text[i])) {
      ++i;
      continue;
    }
    const std::size_t begin = i;
    while (i < text.size() && !is_python_space(text[i])) ++i;
    words.emplace_back(text.substr(begin, i - begin));
  }
  return words;
}

}  // namespace bertrand::text
