// text-embeddings-inference's requests and answers.
#include "serving/tei.h"

#include <algorithm>
#include <cmath>

#include "bert/inference/model.h"
#include "io/error.h"
#include "io/version.h"

namespace bertrand::serving::tei {
namespace {

using inference::Head;
using io::Json;

constexpr std::size_t kMostQueryBytes = std::size_t{4} << 20;  // of /rerank: the query is read again with each text

/// The options of a request, whose types are checked.
class Options {
 public:
  explicit Options(const std::string& body)
      : request_(parse_body(body, 422)), reader_(request_, {"Input validation error", Failure::input}) {
    refuse_other_answers();
  }
  /// What must be there.
  const Json& given(const char* key, const char* kind = "a text or a list") {
    if (const Json* const value = reader_.find(key)) return *value;
    std::vector<std::string> keys;
    for (const auto& item : request_.items()) keys.push_back(io::shown(item.key()));
    refuse(422, "Input validation error: {}: expected {}, got none; the request has {}", key, kind,
           keys.empty() ? "no keys" : fmt::format("{}", fmt::join(keys, ", ")));
  }
  bool has(const char* key) { return reader_.find(key) != nullptr; }
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

void check(const Json& inputs, bool is_batch, const Limits& limits, const char* key = "inputs") {
  if (inputs.empty()) refuse(400, "Input validation error: `{}` cannot be empty", key);
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

/// As encode(), of the two as the pair that the model reads. The request has neither text nor text_pair: what is wrong
/// with these is told of the query or of `where`.
inference::Query encode_pair(const ServedModel& model, const Json& query, const Json& text, const std::string& where,
                             bool truncate) {
  try {
    return encode(model, {{"text", query}, {"text_pair", text}, {"raw_scores", true}}, where, truncate);
  } catch (const Error& error) {
    const std::string_view message = error.what();
    for (const auto& [before, name] :
         {std::pair(where + ": text: ", std::string("query")), {where + ": text_pair: ", where}})
      if (message.starts_with(before)) fail(error.failure(), "{}: {}", name, message.substr(before.size()));
    throw;
  }
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

/// The first model that can say how well a text answers a query: of one label, or of two classes, of which the second
/// is the relevant one (what finetune --task msmarco trains). One whose names say that it is the first is none.
ModelPointer reranker(const Models& models) {
  for (const ModelPointer& model : models.all()) {
    if (model->head() != Head::classify) continue;
    const std::size_t labels = model->labels().size();
    const tasks::Kind kind = model->kind_of_classifier();
    if (labels == 1 || (labels == 2 && kind == tasks::Kind::classification && model->labels()[0] != "relevant"))
      return model;
  }
  refuse(424, "Backend error: Model is not a re-ranker model");
}

/// The log-odds of "relevant" from the logits of a reranker.
double relevance(const Json& answer) {
  std::vector<double> logits;
  for (const auto& [label, logit] : answer.at("scores").items()) logits.push_back(logit.get<double>());
  return logits.size() == 1 ? logits[0] : logits[1] - logits[0];
}

Json predictions_of(const Json& answer) {
  Json predictions = Json::array();
  for (const auto& [label, score] : answer.at("scores").items())
    predictions.push_back({{"score", score}, {"label", label}});
  std::ranges::stable_sort(predictions.get_ref<Json::array_t&>(), std::greater(),
                           [](const Json& prediction) { return prediction.at("score").get<double>(); });
  return predictions;
}

Question predict(Options& options, const Models& models, const Limits& limits) {
  const ModelPointer model = models.first(Head::classify);
  if (!model) refuse(424, "Backend error: Model is not a classifier model");
  const Json& inputs = options.given("inputs");
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

Question embed(Options& options, const Models& models, const Limits& limits) {
  const ModelPointer model = models.first(Head::embed);
  if (!model) refuse(424, "Backend error: Model is not an embedding model");
  const Json& inputs = options.given("inputs");
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

Question rerank(Options& options, const Models& models, const Limits& limits) {
  const ModelPointer model = reranker(models);
  const Json &query = options.given("query", "a text"), &texts = options.given("texts", "a list of texts");
  if (!query.is_string()) refuse(422, "Input validation error: query: expected a string, got {}", io::shown(query));
  const std::size_t bytes = query.get_ref<const std::string&>().size();
  if (bytes == 0) refuse(400, "Input validation error: `query` cannot be empty");
  if (!texts.is_array()) refuse(422, "Input validation error: texts: expected a list, got {}", io::shown(texts));
  check(texts, true, limits, "texts");
  if (bytes > kMostQueryBytes / texts.size())
    refuse(413, "Input validation error: query: expected at most {} bytes with {} texts, got {}",
           kMostQueryBytes / texts.size(), texts.size(), bytes);
  const bool truncate = options.flag("truncate", false), raw = options.flag("raw_scores", false);
  Question question{.model = model};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string where = fmt::format("texts[{}]", i);
    if (!texts[i].is_string())
      refuse(422, "Input validation error: {}: expected a string, got {}", where, io::shown(texts[i]));
    question.queries.push_back(encode_pair(*model, query, texts[i], where, truncate));
  }
  std::vector<std::string> returned;
  if (options.flag("return_text", false)) {
    returned = texts.get<std::vector<std::string>>();
    // Here, in the answer's JSON, and as text, of which a byte may become six.
    for (const std::string& text : returned) question.bytes += 8 * text.size();
  }
  question.respond = [raw, returned = std::move(returned)](const std::vector<Json>& answers) {
    std::vector<std::pair<double, std::size_t>> order;  // by log-odds: probabilities near 1 are the same f32
    for (std::size_t i = 0; i < answers.size(); ++i) order.emplace_back(relevance(answers[i]), i);
    std::ranges::stable_sort(order, std::greater(), &std::pair<double, std::size_t>::first);
    Json ranks = Json::array();
    for (const auto& [odds, i] : order) {
      Json& rank = ranks.emplace_back(Json{{"index", i}});
      if (!returned.empty()) rank["text"] = returned[i];
      rank["score"] = inference::json_number(raw ? odds : 1 / (1 + std::exp(-odds)));
    }
    return Response{.body = io::json_text(ranks)};
  };
  return question;
}

}  // namespace

Question ask(const Request& request, const Models& models, const Limits& limits) {
  Options options(request.body);
  const std::string_view path = path_of(request.target);
  if (path == "/predict") return predict(options, models, limits);
  if (path == "/embed") return embed(options, models, limits);
  if (path == "/rerank" || options.has("query")) return rerank(options, models, limits);
  return (models.first(Head::classify) ? predict : embed)(options, models, limits);
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
    type[labels.size() == 1 ? "reranker" : "classifier"] = {{"id2label", names}, {"label2id", ids}};
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
