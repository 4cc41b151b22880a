// OpenAI's route of embeddings.
#include "serving/openai.h"

#include <doctest/doctest.h>

#include <cstring>

#include "io/base64.h"
#include "serving/asked.h"

using namespace bertrand;
using io::Json;

namespace {

/// An encoder and a classifier.
struct Encoder : support::Asked {
  support::TemporaryDirectory directory;
  Encoder() {
    support::write_small_classifier(directory / "classes");
    support::write_small_head<support::SmallEncoder>(directory / "vectors", {.architecture = "BertModel"});
    for (const char* name : {"classes", "vectors"}) models.put(support::open_served(directory / name, name));
  }
};

}  // namespace

TEST_CASE("OpenAI's route answers with the vectors of /embed, as numbers or as the bytes of f32 in base64") {
  const Encoder encoder;
  const Json vectors = encoder.json("/embed", R"({"inputs": ["red fish", "bird"]})");
  const Json answer = encoder.json("/v1/embeddings", R"({"input": ["red fish", "bird"], "model": "vectors"})");
  CHECK(answer ==
        Json{{"object", "list"},
             {"data",
              {{{"object", "embedding"}, {"index", 0}, {"embedding", vectors[0]}},
               {{"object", "embedding"}, {"index", 1}, {"embedding", vectors[1]}}}},
             {"model", "vectors"},
             {"usage", {{"prompt_tokens", 7}, {"total_tokens", 7}}}});  // [CLS] red fish [SEP] [CLS] bird [SEP]
  const Json one = encoder.json("/v1/embeddings", R"({"input": "red fish", "encoding_format": "base64"})");
  const auto bytes = io::from_base64(one["data"][0]["embedding"].get<std::string>());
  REQUIRE(bytes);
  REQUIRE(bytes->size() == 4 * vectors[0].size());
  for (std::size_t i = 0; i < vectors[0].size(); ++i) {
    float number = 0;
    std::memcpy(&number, bytes->data() + 4 * i, sizeof number);
    CHECK(number == vectors[0][i].get<float>());
  }
}

TEST_CASE("what OpenAI's route cannot read is refused in OpenAI's form") {
  const Encoder encoder;
  const auto refusal = [&](const std::string& body) { return encoder.error("/v1/embeddings", body); };
  CHECK(refusal("{}") == "400: input: expected a text or a list of texts, got none");
  CHECK(refusal(R"({"input": 5})") == "400: input: expected a text or a list of texts, got 5");
  CHECK(refusal(R"({"input": []})") == "400: expected 1 to 4 texts in a request, got 0");
  CHECK(refusal(R"({"input": ["a", "a", "a", "a", "a"]})") == "400: expected 1 to 4 texts in a request, got 5");
  CHECK(refusal(R"({"input": [101, 102]})") ==
        "400: input[0]: expected a text, got 101; hint: ids of tokens are not read, let the client send texts");
  CHECK(refusal(R"({"input": ["red", [101]]})").starts_with("400: input[1]: expected a text, got [101]; hint: ids"));
  CHECK(refusal(R"({"input": ["red", " "]})") == "400: input[1]: text: expected at least one token, got none");
  CHECK(refusal(R"({"input": "red", "encoding_format": "int8"})") ==
        "400: encoding_format: expected float or base64, got \"int8\"");
  CHECK(refusal(R"({"input": "red", "model": "ada"})") ==
        "404: model: expected one that is served, got \"ada\"; GET /models has their names");
  CHECK(refusal(R"({"input": "red", "model": "classes"})") ==
        "400: model: expected an encoder, got \"classes\", whose task is classify");
  CHECK(refusal(R"({"input": "red", "dimensions": 2})") == "400: dimensions: expected 16, those of \"vectors\", got 2");
  CHECK(refusal("x").starts_with("400: JSON Parse error"));
  CHECK(encoder.error("/v1/embeddings", "", "GET") == "405: /v1/embeddings: expected POST, got GET");
  std::string longer = "red";
  for (int i = 0; i < 30; ++i) longer += " red";
  const std::string body = R"({"dimensions": 16, "input": ")" + longer + "\"";
  CHECK(refusal(body + "}") ==
        "400: input[0]: expected at most 24 tokens, got more; hint: \"truncate\": true leaves out the end");
  CHECK(encoder("POST", "/v1/embeddings", body + R"(, "truncate": true})").status == 200);
  support::Asked others;
  others.models.put(encoder.models.find("classes"));
  CHECK(others.error("/v1/embeddings", R"({"input": "red"})") ==
        "404: model: expected an encoder that is served, got none; hint: --model DIR of a model without a head");
}

TEST_CASE("an error has the type and the code of its status") {
  for (const auto& [status, type] : {std::pair(400, "invalid_request_error"),
                                     {404, "invalid_request_error"},
                                     {429, "rate_limit_error"},
                                     {503, "server_error"}})
    CHECK(Json::parse(serving::openai::error_text(status, "x")) ==
          Json{{"error", {{"message", "x"}, {"type", type}, {"param", nullptr}, {"code", status}}}});
}
