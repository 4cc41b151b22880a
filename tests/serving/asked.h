// A request through its dialect and a model, without sockets and threads.
#pragma once
#include "serving/routes.h"
#include "support/small_heads.h"

namespace support {

inline bertrand::serving::ModelPointer open_served(const std::filesystem::path& directory, const std::string& name,
                                                   std::int64_t version = 1) {
  bertrand::serving::ModelOptions options;
  options.machine.threads = 1;
  options.inference.windows = {.doc_stride = 2, .max_query_length = 4};
  return std::make_shared<bertrand::serving::ServedModel>(
      bertrand::serving::ModelPlace{.name = name, .directory = directory, .version = version}, options);
}

/// The answers of the model to each query.
inline std::vector<bertrand::io::Json> answers_to(bertrand::serving::Question& question) {
  std::vector<bertrand::io::Json> answers(question.queries.size());
  bertrand::inference::run_all(question.model->predictor(), question.queries, 4096, [&](std::size_t i, auto outputs) {
    answers[i] = bertrand::inference::answer(question.queries[i], outputs);
  });
  return answers;
}

/// Models to ask, and the least that is served with them.
struct Asked {
  bertrand::serving::Models models;
  bertrand::serving::Metrics metrics;
  std::size_t max_texts = 4;

  bertrand::serving::Response operator()(const std::string& method, const std::string& target,
                                         const std::string& body = "") const {
    const bertrand::serving::Request request{.method = method, .target = target, .body = body};
    bertrand::serving::Plan plan =
        bertrand::serving::plan(request, {.models = models, .metrics = metrics, .limits = {.max_texts = max_texts}});
    if (auto* response = std::get_if<bertrand::serving::Response>(&plan)) return std::move(*response);
    auto& question = std::get<bertrand::serving::Question>(plan);
    return question.respond(answers_to(question));
  }
  bertrand::io::Json json(const std::string& target, const std::string& body) const {
    const bertrand::serving::Response response = (*this)("POST", target, body);
    CAPTURE(response.body);
    CHECK(response.status == 200);
    return nlohmann::ordered_json::parse(response.body);
  }
  /// "STATUS: the text of the error"
  std::string error(const std::string& target, const std::string& body, const std::string& method = "POST") const {
    const bertrand::serving::Response response = (*this)(method, target, body);
    const auto json = nlohmann::json::parse(response.body);
    if (!json.contains("error")) return std::to_string(response.status) + ": ";
    const auto& error = json.at("error");  // a text, or OpenAI's object
    return std::to_string(response.status) + ": " +
           (error.is_object() ? error.at("message") : error).get<std::string>();
  }
};

}  // namespace support
