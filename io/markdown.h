// Texts of others inside Markdown.
#pragma once
#include <string>
#include <string_view>

namespace bertrand::io {

/// A cell of a table in which `text`, of UTF-8, is only itself: no markup, no line break, no end of the cell. What is
/// longer than `most` bytes is cut before a character, and "…" says so.
std::string markdown_cell(std::string_view text, std::size_t most = 300);

}  // namespace bertrand::io
