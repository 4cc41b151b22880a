// The text of a line of JSON.
#include "bert/data/json_lines.h"

#include "bert/text/vocabulary.h"
#include "io/error.h"
#include "io/json.h"

namespace bertrand::data {

std::optional<std::string> text_of_json_line(std::string_view line, const std::string& name, std::uint64_t number) {
  if (text::strip(line).empty()) return {};
  const std::string place = fmt::format("{}:{}", name, number);
  const io::Json json = io::parse_json(line, {place, Failure::input});
  return io::JsonReader(json, {place, Failure::input}).text("text");
}

}  // namespace bertrand::data
