// OpenAI's requests and answers.
#include "serving/openai.h"

#include "io/base64.h"
#include "io/error.h"
#include "io/little_endian.h"

namespace bertrand::serving::openai {
namespace {

using inference::Head;
using io::Json;

ModelPointer encoder(const Models& models, const std::string& name) {
  if (name.empty()) {
    if (ModelPointer model = models.first(Head::embed)) return model;
    refuse(404, "model: expected an encoder that is served, got none; hint: --model DIR of a model without a head");
  }
  ModelPointer model = models.find(name);
  if (!model) refuse(404, "model: expected one that is served, got {}; GET /models has their names", io::shown(name));
  if (model->head() != Head::embed)
    refuse(400, "model: expected an encoder, got {}, whose task is {}", io::shown(name),
           io::name_in(inference::heads(), model->head()));
  return model;
}

/// The texts of a request. A client may have cut them into the ids of a vocabulary of its own, which say nothing here.
Json texts_of(const Json* input, std::size_t most) {
  if (!input) refuse(400, "input: expected a text or a list of texts, got none");
  if (input->is_string()) return Json::array({*input});
  if (!input->is_array()) refuse(400, "input: expected a text or a list of texts, got {}", io::shown(*input));
  check_count(input->size(), most, 400);
  for (std::size_t i = 0; i < input->size(); ++i)
    if (const Json& text = (*input)[i]; !text.is_string())
      refuse(
          400, "input[{}]: expected a text, got {}{}", i, io::shown(text),
          text.is_number() || text.is_array() ? "; hint: ids of tokens are not read, let the client send texts" : "");
  return *input;
}

std::string bytes_of(const Json& numbers) {
  std::string bytes;
  for (const Json& number : numbers) io::append_fixed(bytes, number.get<float>());
  return bytes;
}

}  // namespace

Question embeddings(const Request& request, const Models& models, std::size_t max_texts) {
  const Json body = parse_body(request.body, 400);
  io::JsonReader reader(body, {"request", Failure::input});
  const ModelPointer model = encoder(models, reader.text("model", ""));
  const std::string format = reader.text("encoding_format", "float");
  if (format != "float" && format != "base64")
    refuse(400, "encoding_format: expected float or base64, got {}", io::shown(format));
  if (const Json* const size = reader.find("dimensions");
      size && !size->is_null() && *size != model->config().hidden_size)
    refuse(400, "dimensions: expected {}, those of {}, got {}", model->config().hidden_size, io::shown(model->name()),
           io::shown(*size));
  const bool truncate = reader.flag("truncate", false);
  Question question{.model = model};
  std::size_t tokens = 0;
  for (const Json& text : texts_of(reader.find("input"), max_texts)) {
    const std::string where = fmt::format("input[{}]", question.queries.size());
    inference::Query query = model->predictor().encode({{"text", text}, {"normalize", true}}, where);
    if (query.cut && !truncate)
      refuse(400, "{}: expected at most {} tokens, got more; hint: \"truncate\": true leaves out the end", where,
             model->max_length());
    tokens += query.sequences[0].token_ids.size();
    question.queries.push_back(std::move(query));
  }
  question.respond = [model, tokens, in_base64 = format == "base64"](const std::vector<Json>& answers) {
    Json data = Json::array();
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const Json& embedding = answers[i].at("embedding");
      data.push_back({{"object", "embedding"},
                      {"index", i},
                      {"embedding", in_base64 ? Json(io::to_base64(bytes_of(embedding))) : embedding}});
    }
    return Response{.body = io::json_text({{"object", "list"},
                                           {"data", std::move(data)},
                                           {"model", model->name()},
                                           {"usage", {{"prompt_tokens", tokens}, {"total_tokens", tokens}}}})};
  };
  return question;
}

std::string error_text(int status, const std::string& message) {
  const char* const type = status == 429 ? "rate_limit_error" : status < 500 ? "invalid_request_error" : "server_error";
  return io::json_text({{"error", {{"message", message}, {"type", type}, {"param", nullptr}, {"code", status}}}});
}

}  // namespace bertrand::serving::openai
