// predict: instances (rows) or inputs (columns) become queries, and answers become predictions or outputs.
#include "serving/tensorflow.h"

#include <algorithm>
#include <set>
#include <utility>

#include "bert/text/utf8.h"
#include "io/base64.h"
#include "io/error.h"

namespace bertrand::serving::tensorflow {
namespace {

using io::Json;

constexpr std::string_view kInputs = "input_ids,input_mask,segment_ids";

std::string_view type_of(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return "Null";
    case Json::value_t::boolean: return value.get<bool>() ? "True" : "False";
    case Json::value_t::object: return "Object";
    case Json::value_t::array: return "Array";
    case Json::value_t::string: return "String";
    default: return "Number";
  }
}

bool is_base64(const Json& value) {
  return value.is_object() && value.size() == 1 && value.contains("b64") && value.at("b64").is_string();
}
bool is_row_object(const Json& value) { return value.is_object() && !is_base64(value); }

std::int32_t whole_number(const Json& value) {
  // Compared in its own type, as one beyond 2^63 would turn negative.
  const bool is_whole = value.is_number_unsigned()
                            ? std::in_range<std::int32_t>(value.get<std::uint64_t>())
                            : value.is_number_integer() && std::in_range<std::int32_t>(value.get<std::int64_t>());
  if (!is_whole)
    refuse(400, "JSON Value: {} Type: {} is not of expected type: int32", io::shown(value), type_of(value));
  return value.get<std::int32_t>();
}

std::vector<std::int32_t> whole_numbers(const Json& value) {
  if (!value.is_array())
    refuse(400, "JSON Value: {} found at incorrect level: 0 in the JSON DOM. Expected at level: 1", io::shown(value));
  std::vector<std::int32_t> numbers;
  for (const Json& one : value) {
    if (one.is_array()) refuse(400, "Encountered list at unexpected level: 1 expected < 1");
    numbers.push_back(whole_number(one));
  }
  return numbers;
}

/// The value of whichever of two keys the object has.
std::optional<std::vector<std::int32_t>> numbers_of(const Json& object, const char* key, const char* other,
                                                    const std::string& where) {
  if (object.contains(key) && object.contains(other)) refuse(400, "{}: expected {} or {}, got both", where, key, other);
  for (const char* name : {key, other})
    if (const auto found = object.find(name); found != object.end()) return whole_numbers(*found);
  return {};
}

/// A text is a string or {"b64": …}. Those who read it rely on valid UTF-8, which JSON's own strings are.
Json plain_text(const Json& value) {
  if (!is_base64(value)) return value;
  const auto bytes = io::from_base64(value.at("b64").get_ref<const std::string&>());
  if (!bytes) refuse(400, "Unable to base64 decode");
  std::string valid;
  if (text::drop_invalid_utf8(*bytes, valid).count > 0) refuse(400, "b64: expected a text in UTF-8, got other bytes");
  return *bytes;
}

inference::Query encode_row(const ServedModel& model, const Json& row, const std::string& where) {
  if (!is_row_object(row)) return model.predictor().encode({{"text", plain_text(row)}}, where);
  if (row.contains("input_ids")) {
    GivenIds given{.ids = whole_numbers(row.at("input_ids")),
                   .mask = numbers_of(row, "attention_mask", "input_mask", where),
                   .types = numbers_of(row, "token_type_ids", "segment_ids", where)};
    return model.predictor().encode_ids(without_padding(std::move(given), where), where);
  }
  Json request = Json::object();
  for (const auto& [key, value] : row.items()) io::append(request, key, plain_text(value));
  return model.predictor().encode(request, where);
}

/// All rows have the keys of the first one, which are those of ids or those of a text.
void check_row(const Json& row, const Json& first, std::size_t number) {
  if (is_row_object(row) != is_row_object(first)) {
    if (is_row_object(first)) refuse(400, "Expecting object but got list at item {} of input list", number);
    refuse(400, "Expecting value/list but got object at item {} of input list", number);
  }
  if (!is_row_object(row)) {
    if (!row.is_string() && !is_base64(row))
      refuse(400,
             "instances is a plain list, but expecting list of objects as multiple input tensors required as per "
             "tensorinfo_map");
    return;
  }
  std::set<std::string> keys, expected;
  for (const auto& [key, value] : row.items()) {
    keys.insert(key);
    if (!is_id_key(key) && !is_text_key(key))
      refuse(400,
             "Failed to process element: {} key: {} of 'instances' list. Error: INVALID_ARGUMENT: JSON object: does "
             "not have named input: {}",
             number, key, key);
  }
  for (const auto& [key, value] : first.items()) expected.insert(key);
  const bool has_ids = keys.contains("input_ids");
  const bool is_clear = std::ranges::all_of(keys, [&](const auto& k) { return has_ids == is_id_key(k); });
  if (keys != expected || keys.empty() || !is_clear)
    refuse(400, "Failed to process element: {} of 'instances' list. JSON object: {} keys must be equal to: {}", number,
           io::shown(row), keys == expected ? std::string(kInputs) : fmt::format("{}", fmt::join(expected, ",")));
}

/// What the model says, without the names of labels: the value of its only output, or an object of several.
Json output_of(const Json& answer) {
  if (const auto scores = answer.find("scores"); scores != answer.end()) {
    Json values = Json::array();
    for (const Json& score : *scores) values.push_back(score);
    return values;
  }
  return answer.size() == 1 ? answer.front() : answer;
}

Question predict_rows(const ModelPointer& model, const Json& rows, std::size_t max_texts) {
  if (!rows.is_array()) refuse(400, "JSON Value: {} Excepting 'instances' to be an list/array", io::shown(rows));
  if (rows.empty()) refuse(400, "JSON Value: {} No values in 'instances' array", io::shown(rows));
  check_count(rows.size(), max_texts, 400);
  Question question{.model = model};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check_row(rows[i], rows[0], i);
    try {
      question.queries.push_back(encode_row(*model, rows[i], fmt::format("instances[{}]", i)));
    } catch (const Refusal& refusal) {
      refuse(400, "Failed to process element: {} of 'instances' list. Error: INVALID_ARGUMENT: {}", i, refusal.message);
    }
  }
  question.respond = [](const std::vector<Json>& answers) {
    std::vector<Json> predictions;
    for (const Json& answer : answers) predictions.push_back(output_of(answer));
    return Response{.body = row_text(predictions)};
  };
  return question;
}

/// {"a": [1, 2], "b": [3, 4]} as [{"a": 1, "b": 3}, {"a": 2, "b": 4}].
Json rows_of(const Json& columns) {
  const bool has_ids = columns.contains("input_ids");
  const bool is_of_text =
      std::ranges::any_of(columns.items(), [](const auto& column) { return is_text_key(column.key()); });
  if (!is_of_text && !has_ids) refuse(400, "Missing named input: input_ids in 'inputs' object.");
  std::vector<Json> rows;
  std::optional<std::size_t> count;
  for (const auto& [key, column] : columns.items()) {
    check_input_name(key, has_ids);
    if (is_passed_over(key)) continue;
    if (!column.is_array()) refuse(400, "inputs: {}: expected a list, got {}", key, io::shown(column));
    if (!count) rows.assign(*(count = column.size()), Json::object());
    if (column.size() != *count)
      refuse(400, "inputs: {}: Encountered list at unexpected size: {} at level: 0 expected size: {}", key,
             column.size(), *count);
    for (std::size_t i = 0; i < *count; ++i) io::append(rows[i], key, column[i]);
  }
  return rows;
}

Question predict_columns(const ModelPointer& model, const Json& inputs, std::size_t max_texts) {
  Json rows = Json::array();
  if (is_row_object(inputs)) rows = rows_of(inputs);
  else if (inputs.is_string() || is_base64(inputs)) rows.push_back(inputs);
  else if (inputs.is_array() &&
           std::ranges::all_of(inputs, [](const Json& v) { return v.is_string() || is_base64(v); }))
    rows = inputs;
  else
    refuse(400,
           "inputs is a plain value/list, but expecting an object as multiple input tensors required as per "
           "tensorinfo_map");
  check_count(rows.size(), max_texts, 400);
  Question question{.model = model};
  for (std::size_t i = 0; i < rows.size(); ++i)
    question.queries.push_back(encode_row(*model, rows[i], fmt::format("inputs[{}]", i)));
  question.respond = [](const std::vector<Json>& answers) {
    Json outputs;
    for (const Json& answer : answers) {
      const Json output = output_of(answer);
      if (!output.is_object()) outputs.push_back(output);
      else
        for (const auto& [key, value] : output.items()) outputs[key].push_back(value);
    }
    return Response{.body = column_text(outputs)};
  };
  return question;
}

}  // namespace

Question predict(const ModelPointer& model, const std::string& body, std::size_t max_texts) {
  const Json request = parse_body(body, 400);
  if (!request.is_object()) refuse(400, "JSON Value: {} Is not object", io::shown(request));
  if (const auto name = request.find("signature_name"); name != request.end()) {
    if (!name->is_string())
      refuse(400, "JSON Value: {} not formatted correctly. 'signature_name' key must be a string value.",
             io::shown(request));
    if (const auto& given = name->get_ref<const std::string&>(); !given.empty() && given != "serving_default")
      refuse(400, "Serving signature name: {} not found in signature def", io::json_text(*name));
  }
  const auto rows = request.find("instances"), columns = request.find("inputs");
  if (rows != request.end() && columns != request.end())
    refuse(400, "JSON Value: {} Not formatted correctly expecting only one of 'inputs' or 'instances' keys to exist ",
           io::shown(request));
  if (rows != request.end()) return predict_rows(model, *rows, max_texts);
  if (columns != request.end()) return predict_columns(model, *columns, max_texts);
  refuse(400, "Missing 'inputs' or 'instances' key");
}

}  // namespace bertrand::serving::tensorflow
