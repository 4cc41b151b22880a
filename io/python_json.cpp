#include "io/python_json.h"

#include <charconv>
#include <cmath>

#include "io/json.h"

namespace bertrand::io {

std::string python_json(std::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace);
}

std::string python_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  char digits[40];
  const double size = std::abs(value);
  const bool scientific = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto format = scientific ? std::chars_format::scientific : std::chars_format::fixed;
  std::string text(digits, std::to_chars(digits, digits + sizeof digits, value, format).ptr);
  if (!scientific && text.find('.') == std::string::npos) text += ".0";
  return text;
}

}  // namespace bertrand::io
