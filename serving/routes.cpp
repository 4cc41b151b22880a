// Paths and their dialects.
#include "serving/routes.h"

#include <algorithm>

#include "io/error.h"
#include "io/shortened.h"
#include "serving/kserve.h"
#include "serving/openai.h"
#include "serving/tensorflow.h"

namespace bertrand::serving {
namespace {

using io::Json;

constexpr std::size_t kTokenBytes = 128;  // of a token in the answer: its id, in JSON's memory, and as text

bool is_kserve(std::string_view path) { return path == "/v2" || path.starts_with("/v2/"); }
bool is_openai(std::string_view path) { return path == "/v1/embeddings"; }
bool is_tensorflow(std::string_view path) { return starts_with_any_case(path, "/v1/") && !is_openai(path); }
/// A client without a path in its address asks /, and Amazon SageMaker's /invocations.
bool is_tei_question(std::string_view path) {
  constexpr std::string_view kPaths[] = {"/predict", "/embed", "/rerank", "/", "/invocations"};
  return std::ranges::find(kPaths, path) != std::end(kPaths);
}
bool is_tei(std::string_view path) { return is_tei_question(path) || path == "/info"; }

/// The methods of a path that neither dialect of models' names has.
std::string methods_of(std::string_view path) {
  if (path == "/") return "GET, HEAD, POST";
  return is_tei_question(path) || is_openai(path) || path == "/answer" ? "POST" : "GET, HEAD";
}

std::string models_text(const Models& models) {
  Json all = Json::array();
  for (const ModelPointer& model : models.all())
    all.push_back({{"name", model->name()},
                   {"version", model->version()},
                   {"task", io::name_in(inference::heads(), model->head())},
                   {"max_length", model->max_length()}});
  return io::json_text(all);
}

/// POST /answer: {"model": NAME (the first one), …} → {"model", "answer", "tokens", "cut"}: the request and the answer
/// of predict, and what the model read.
Question answer_with_tokens(const std::string& body, const Models& models) {
  const Json request = parse_body(body, 400);
  io::JsonReader reader(request, {"request", Failure::input});
  const std::string name = reader.text("model", models.all().front()->name());
  const ModelPointer model = models.find(name);
  if (!model) refuse(404, "model: expected one that is served, got {}", io::shown(name));
  Question question{.model = model};
  question.queries.push_back(model->predictor().encode(request, "request"));
  // The tokens as JSON take far more than their ids: they are made when there is an answer and room for both.
  const auto ids = std::make_shared<std::vector<std::vector<std::int32_t>>>();
  for (const bert::Sequence& sequence : question.queries[0].sequences) {
    ids->push_back(sequence.token_ids);
    question.bytes += sequence.token_ids.size() * kTokenBytes;
  }
  question.respond = [model, ids, cut = question.queries[0].cut](const std::vector<Json>& answers) {
    Json tokens = Json::array();
    for (const std::vector<std::int32_t>& sequence : *ids) {
      Json& pieces = tokens.emplace_back(Json::array());
      for (const std::int32_t id : sequence) pieces.push_back(model->predictor().token(id));
    }
    Json response{{"model", model->name()}, {"answer", answers[0]}};
    response["tokens"] = std::move(tokens);
    response["cut"] = cut;
    return Response{.body = io::json_text(response)};
  };
  return question;
}

Plan plan_get(std::string_view path, const Request& request, const Served& served) {
  if (path == "/") return Response{.body = std::string(kPage), .content_type = "text/html; charset=utf-8"};
  if (path == "/health" || path == "/ping") return Response{.body = "", .content_type = "text/plain"};
  if (path == "/metrics" || path == "/monitoring/prometheus/metrics")
    return Response{.body = served.metrics.text(served.waiting, served.held_bytes),
                    .content_type = "text/plain; version=0.0.4"};
  if (path == "/info") return Response{.body = tei::info_text(served.models, served.limits)};
  if (path == "/models") return Response{.body = models_text(served.models)};
  if (const std::string methods = methods_of(path); methods == "POST")
    refuse(405, "{}: expected {}, got {}", path, methods, request.method);
  refuse(404, "expected a path that is served, got {} {}", request.method, request.target);
}

Plan plan_unchecked(Request request, const Served& served) {
  if (request.method == "HEAD") request.method = "GET";  // the sockets leave the body out
  const std::string_view path = path_of(request.target);
  const std::size_t most = served.limits.max_texts;
  if (is_tensorflow(path)) return tensorflow::plan(request, served.models, most);
  if (is_kserve(path)) return kserve::plan(request, served.models, most);
  if (request.method == "GET") return plan_get(path, request, served);
  const bool is_post = request.method == "POST";
  if (is_post && is_tei_question(path)) return tei::ask(request, served.models, served.limits);
  if (is_post && is_openai(path)) return openai::embeddings(request, served.models, most);
  if (is_post && path == "/answer") return answer_with_tokens(request.body, served.models);
  plan_get(path, request, served);  // refuses a path that is none
  refuse(405, "{}: expected {}, got {}", path, methods_of(path), request.method);
}

}  // namespace

bool asks_a_model(const Request& request) { return request.method == "POST"; }

Plan plan(const Request& request, const Served& served) {
  try {
    return plan_unchecked(request, served);
  } catch (const Refusal& bad) {
    Response response = refusal(request, bad.status, bad.message);
    if (bad.status == 405) response.allow = methods_of(path_of(request.target));
    return response;
  } catch (const Error& error) {
    const bool is_input = error.failure() == Failure::input || error.failure() == Failure::model;
    if (!is_input) throw;
    return refusal(request, is_tei(path_of(request.target)) ? 422 : 400, error.what());
  }
}

Response refusal(const Request& request, int status, const std::string& message) {
  // It may repeat what the request has, and waits for its client outside of the budget.
  const std::string text = io::shortened(message);
  const std::string_view path = path_of(request.target);
  if (is_tei(path)) return {.status = status, .body = tei::error_text(status, text)};
  if (is_openai(path)) return {.status = status, .body = openai::error_text(status, text)};
  return {.status = status, .body = fmt::format("{{ \"error\": {} }}", io::json_text(text))};
}

}  // namespace bertrand::serving
