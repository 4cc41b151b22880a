// What Python's str and re say of characters, for scripts whose results must be met: lower(), split(), and \w.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::text {

/// The code points of valid UTF-8, and back.
std::u32string to_code_points(std::string_view utf8);
std::string to_utf8(std::u32string_view code_points);

/// Whether str.isspace() holds: what split() cuts at.
bool is_python_space(char32_t c);
/// Whether \w matches in re: letters, numbers and _, by Unicode 14.0.
bool is_python_word(char32_t c);

/// str.lower(), in place.
void python_lower(std::u32string& text);
/// str.split(): what stands between runs of white space.
std::vector<std::u32string> python_split(std::u32string_view text);

}  // namespace bertrand::text
