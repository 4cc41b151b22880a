// What the dialects share: a request becomes a response at once, or questions for a model. No sockets, no threads.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/json.h"
#include "serving/message.h"
#include "serving/models.h"

namespace bertrand::serving {

/// What to ask a model, and how its answers, one for each query in their order, become the response.
struct Question {
  ModelPointer model;
  std::vector<inference::Query> queries;  ///< at least one
  std::function<Response(const std::vector<io::Json>& answers)> respond;
  std::size_t bytes = 0;  ///< the most that respond() takes besides the answers. An estimate from above
};

using Plan = std::variant<Response, Question>;

/// Throws Refusal{status}: no JSON, and why not.
io::Json parse_body(const std::string& body, int status);

/// Throws Refusal{status} if there are more queries in a request than `most`, or none.
void check_count(std::size_t count, std::size_t most, int status);

/// The names of what clients send with ids, or with texts.
bool is_id_key(std::string_view name);
bool is_text_key(std::string_view name);
/// label_ids and unique_ids, which are not looked at.
bool is_passed_over(std::string_view name);
/// Throws Refusal{400} for an input that is none of these: beside input_ids those of ids, else those of a text. What is
/// passed over may come with both.
void check_input_name(std::string_view name, bool has_ids);

/// A sequence of ids as clients send it.
struct GivenIds {
  std::vector<std::int32_t> ids;
  std::optional<std::vector<std::int32_t>> mask;   ///< ones, then zeros for padding; none: all ids count
  std::optional<std::vector<std::int32_t>> types;  ///< none: all 0
};
/// What the mask leaves out is padding. Throws Refusal{400} beginning with `where`: unequal lengths, another mask.
inference::PaddedSequence without_padding(GivenIds given, const std::string& where);

/// The path of a target: /a/b of /a/b?c.
std::string_view path_of(std::string_view target);
/// %41 becomes A. Throws Refusal{400} if a % is not followed by two digits.
std::string percent_decoded(std::string_view text);
bool starts_with_any_case(std::string_view text, std::string_view lower_case_beginning);

}  // namespace bertrand::serving
