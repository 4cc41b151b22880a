#include "io/markdown.h"

#include <fmt/format.h>

#include "io/shortened.h"

namespace bertrand::io {

std::string markdown_cell(std::string_view text, std::size_t most) {
  constexpr std::string_view kMarkup = "|`<&\\*_[]~";
  std::string cell;
  for (const char c : shortened(text, most))
    if (c == '\n' || c == '\r' || c == '\t') cell += ' ';
    else if (kMarkup.find(c) != std::string_view::npos) cell += fmt::format("&#{};", int{c});
    else cell += c;
  return cell;
}

}  // namespace bertrand::io
