// Text as lines of JSON: each line is a document, {"text": "…"}.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace bertrand::data {

/// The text of a line, number `number` of the file `name`; nothing of a blank line. Throws Error(Failure::input) as
/// name:number for a line that is not {"text": "…"}.
std::optional<std::string> text_of_json_line(std::string_view line, const std::string& name, std::uint64_t number);

}  // namespace bertrand::data
