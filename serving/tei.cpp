// text-embeddings-inference's requests and answers.
#include "serving/tei.h"

#include <algorithm>

#include "io/error.h"
#include "io/version.h"

namespace bertrand::serving::tei {
namespace {

using inference::Head;
using io::Json;

/// The options of a request, whose types are checked.
class Options {
 public:
  explicit Options(const std::string& body)
      : request_(parse_body(body, 422)), reader_(request_, {"Input validation error", Failure::input}) {
    refuse_other_answers();
    if (reader_.find("inputs")) return;
    std::vector<std::string> keys;
    for (const auto& item : request_.items()) keys.push_back(io::shown(item.key()));
    refuse(422, "Input validation error: inputs: expected a text or a list, got none; the request has {}",
           keys.empty() ? "no keys" : fmt::format("{}", fmt::join(keys, ", ")));
  }
  const Json& inputs() const { return request_.at("inputs"); }
  bool flag(const char* key, bool fallback) { return reader_.flag(key, fallback); }

 private:
  /// Options that would change the answer.
  void refuse_other_answers() {
    for (const char* const key : {"dimensions", "prompt_name", "truncation_direction"}) {
      const Json* const value = reader_.find(key);
      const bool is_direction = std::string_view(key) == "truncation_direction";
      if (!value || value->is_null() || (is_direction && (*value == "Right" || *value == "right"))) continue;
      refuse(422, "Input validation error: {}: expected the default, which alone is served, got {}", key,
             io::shown(*value));
    }
  }

  const Json request_;
  io::JsonReader reader_;
};

void check(const Json& inputs, bool is_batch, const Limits& limits) {
  if (inputs.empty()) refuse(400, "Input validation error: `inputs` cannot be empty");
  if (is_batch && inputs.size() > limits.max_texts)
    refuse(422, "Input validation error: batch size {} > maximum allowed batch size {}", inputs.size(),
           limits.max_texts);
}

inference::Query encode(const ServedModel& model, const Json& request, const std::string& where, bool truncate) {
  for (const char* key : {"text", "text_pair"})
    if (const auto text = request.find(key);
        text != request.end() && text->is_string() && text->get_ref<const std::string&>().empty())
      refuse(400, "Input validation error: {}: `inputs` cannot be empty", where);
  inference::Query query = model.predictor().encode(request, where);
  if (query.cut && !truncate)
    refuse(422, "Input validation error: {}: `inputs` must have less than {} tokens; hint: \"truncate\": true", where,
           model.max_length() + 1);
  return query;
}

/// A text, or a list of one or two.
Json request_of(const Json& input, const std::string& where) {
  const auto is_text = [](const Json& value) { return value.is_string(); };
  if (input.is_string()) return {{"text", input}};
  if (!input.is_array() || input.empty() || input.size() > 2 || !std::ranges::all_of(input, is_text))
    refuse(422,
           "Input validation error: {}: expected a string, a pair of strings [string, string] or a batch of mixed "
           "strings and pairs [[string], [string, string], ...], got {}",
           where, io::shown(input));
  if (input.size() == 1) return {{"text", input[0]}};
  return {{"text", input[0]}, {"text_pair", input[1]}};
}

Json predictions_of(const Json& answer) {
  Json predictions = Json::array();
  for (const auto& [label, score] : answer.at("scores").items())
    predictions.push_back({{"score", score}, {"label", label}});
  std::ranges::stable_sort(predictions.get_ref<Json::array_t&>(), std::greater(),
                           [](const Json& prediction) { return prediction.at("score").get<double>(); });
  return predictions;
}

}  // namespace

Question predict(const Request& request, const Models& models, const Limits& limits) {
  const ModelPointer model = models.first(Head::classify);
  if (!model) refuse(424, "Backend error: Model is not a classifier model");
  Options options(request.body);
  const Json& inputs = options.inputs();
  const bool is_batch = inputs.is_array() && !inputs.empty() && inputs[0].is_array();  // else a list is one pair
  check(inputs, is_batch, limits);
  const bool truncate = options.flag("truncate", false), raw = options.flag("raw_scores", false);
  Question question{.model = model};
  for (std::size_t i = 0; i < (is_batch ? inputs.size() : 1); ++i) {
    const std::string where = is_batch ? fmt::format("inputs[{}]", i) : "inputs";
    Json one = request_of(is_batch ? inputs[i] : inputs, where);
    one["raw_scores"] = raw;
    question.queries.push_back(encode(*model, one, where, truncate));
  }
  question.respond = [is_batch](const std::vector<Json>& answers) {
    if (!is_batch) return Response{.body = io::json_text(predictions_of(answers[0]))};
    Json all = Json::array();
    for (const Json& answer : answers) all.push_back(predictions_of(answer));
    return Response{.body = io::json_text(all)};
  };
  return question;
}

Question embed(const Request& request, const Models& models, const Limits& limits) {
  const ModelPointer model = models.first(Head::embed);
  if (!model) refuse(424, "Backend error: Model is not an embedding model");
  Options options(request.body);
  const Json& inputs = options.inputs();
  check(inputs, inputs.is_array(), limits);
  const bool truncate = options.flag("truncate", false), unit = options.flag("normalize", true);
  Question question{.model = model};
  for (std::size_t i = 0; i < (inputs.is_array() ? inputs.size() : 1); ++i) {
    const std::string where = inputs.is_array() ? fmt::format("inputs[{}]", i) : "inputs";
    const Json& text = inputs.is_array() ? inputs[i] : inputs;
    question.queries.push_back(encode(*model, {{"text", text}, {"normalize", unit}}, where, truncate));
  }
  question.respond = [](const std::vector<Json>& answers) {
    Json all = Json::array();
    for (const Json& answer : answers) all.push_back(answer.at("embedding"));
    return Response{.body = io::json_text(all)};
  };
  return question;
}

std::string info_text(const Models& models, const Limits& limits) {
  ModelPointer answering = models.first(Head::classify);
  if (!answering) answering = models.first(Head::embed);
  const ServedModel& model = answering ? *answering : *models.all().front();
  Json type = Json::object();
  if (model.head() == Head::embed) {
    type["embedding"] = {{"pooling", model.pooling()}};
  } else if (model.head() == Head::classify) {
    Json names = Json::object(), ids = Json::object();
    const std::vector<std::string> labels = model.labels();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      io::append(names, std::to_string(i), labels[i]);
      io::append(ids, labels[i], i);
    }
    type["classifier"] = {{"id2label", names}, {"label2id", ids}};
  }
  return io::json_text({{"model_id", model.name()},
                        {"model_sha", nullptr},
                        {"model_dtype", model.precision()},
                        {"model_type", type},
                        {"max_concurrent_requests", limits.max_waiting},
                        {"max_input_length", model.max_length()},
                        {"max_batch_tokens", limits.max_batch_tokens},
                        {"max_batch_requests", nullptr},
                        {"max_client_batch_size", limits.max_texts},
                        {"auto_truncate", false},
                        {"tokenization_workers", 1},
                        {"version", version()},
                        {"sha", nullptr},
                        {"docker_label", nullptr}});
}

std::string error_text(int status, const std::string& message) {
  const char* type = "Backend";
  if (message.find("cannot be empty") != std::string::npos) type = "Empty";
  else if (status == 429) type = "Overloaded";
  else if (status == 503 || status == 504) type = "Unhealthy";
  else if (status < 500 && status != 424) type = "Validation";
  return io::json_text({{"error", message}, {"error_type", type}});
}

}  // namespace bertrand::serving::tei
