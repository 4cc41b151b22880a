// JSON, ids and paths, as every dialect reads them.
#include "serving/dialect.h"

#include <algorithm>
#include <charconv>

#include "io/ascii.h"

namespace bertrand::serving {

io::Json parse_body(const std::string& body, int status) {
  if (body.empty()) refuse(status, "JSON Parse error: The document is empty");
  try {
    return io::parse_json(body, {.name = "JSON Parse error", .failure = Failure::input});
  } catch (const Error& error) {
    throw Refusal{status, error.what()};
  }
}

void check_count(std::size_t count, std::size_t most, int status) {
  if (count == 0 || count > most) refuse(status, "expected 1 to {} texts in a request, got {}", most, count);
}

bool is_id_key(std::string_view name) {
  constexpr std::string_view kKeys[] = {"input_ids",      "input_mask", "attention_mask", "segment_ids",
                                        "token_type_ids", "label_ids",  "unique_ids"};
  return std::ranges::find(kKeys, name) != std::end(kKeys);
}

bool is_text_key(std::string_view name) {
  constexpr std::string_view kKeys[] = {"text",   "text_pair", "question",  "context",   "words",
                                        "tokens", "choices",   "normalize", "raw_scores"};
  return std::ranges::find(kKeys, name) != std::end(kKeys);
}

bool is_passed_over(std::string_view name) { return name == "label_ids" || name == "unique_ids"; }

void check_input_name(std::string_view name, bool has_ids) {
  if (is_passed_over(name) || (has_ids ? is_id_key(name) : is_text_key(name))) return;
  refuse(400, "inputs: expected {}, got {}",
         has_ids ? "attention_mask and token_type_ids beside input_ids"
                 : "input_ids, or texts: text, text_pair, choices, words, question, context",
         io::shown(name));
}

inference::PaddedSequence without_padding(GivenIds given, const std::string& where) {
  const auto require_as_many = [&](const std::vector<std::int32_t>& values) {
    if (values.size() != given.ids.size())
      refuse(400, "{}: Expecting tensor size: {} but got: {}", where, given.ids.size(), values.size());
  };
  if (!given.types) given.types.emplace(given.ids.size(), 0);
  require_as_many(*given.types);
  std::size_t padding = 0;
  if (given.mask) {
    require_as_many(*given.mask);
    const auto end = std::ranges::find_if(*given.mask, [](std::int32_t one) { return one != 1; });
    if (std::any_of(end, given.mask->end(), [](std::int32_t zero) { return zero != 0; }))
      refuse(400, "{}: mask: expected ones and then zeros, got {}", where, io::shown(*given.mask));
    padding = static_cast<std::size_t>(given.mask->end() - end);
    given.ids.resize(given.ids.size() - padding);
    given.types->resize(given.ids.size());
  }
  return {.sequence = {.token_ids = std::move(given.ids), .token_types = std::move(*given.types)}, .padding = padding};
}

std::string_view path_of(std::string_view target) { return target.substr(0, target.find('?')); }

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    int byte = 0;
    const char* const digits = text.data() + i + 1;
    const char* const end = digits + std::min<std::size_t>(2, text.size() - i - 1);
    if (end - digits != 2 || std::from_chars(digits, end, byte, 16).ptr != end || *digits == '-')
      refuse(400, "path: expected % and two digits, got {}", io::shown(std::string(text)));
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

bool starts_with_any_case(std::string_view text, std::string_view lower_case_beginning) {
  return io::ascii_lower(std::string(text.substr(0, lower_case_beginning.size()))) == lower_case_beginning;
}

}  // namespace bertrand::serving
