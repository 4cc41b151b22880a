#include "io/markdown.h"

#include <fmt/format.h>

namespace bertrand::io {

std::string markdown_cell(std::string_view text, std::size_t most) {
  const bool cut = text.size() > most;
  if (cut) {
    std::size_t end = most;
    while (end > 0 && (text[end] & 0xC0) == 0x80) --end;  // not within a character
    text = text.substr(0, end);
  }
  constexpr std::string_view kMarkup = "|`<&\\*_[]~";
  std::string cell;
  for (const char c : text)
    if (c == '\n' || c == '\r' || c == '\t') cell += ' ';
    else if (kMarkup.find(c) != std::string_view::npos) cell += fmt::format("&#{};", int{c});
    else cell += c;
  return cell + (cut ? "…" : "");
}

}  // namespace bertrand::io
