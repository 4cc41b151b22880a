// text-embeddings-inference's errors, and what else only its clients ask.
#include "serving/tei.h"

#include <doctest/doctest.h>

#include "serving/asked.h"

using namespace bertrand;

TEST_CASE("the kind of an error is the one that text-embeddings-inference gives to its status") {
  for (const auto& [status, kind] : {std::pair(400, "Validation"),
                                     {405, "Validation"},
                                     {408, "Validation"},
                                     {413, "Validation"},
                                     {415, "Validation"},
                                     {422, "Validation"},
                                     {424, "Backend"},
                                     {429, "Overloaded"},
                                     {500, "Backend"},
                                     {503, "Unhealthy"},
                                     {504, "Unhealthy"}})
    CHECK(nlohmann::json::parse(serving::tei::error_text(status, "x")).at("error_type") == kind);
}

TEST_CASE("/info is of the model that /embed asks if none classifies, with its pooling, or else has the labels") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "words", {"O", "B-A"});
  support::write_small_classifier(directory / "classes", {"red", "bird"});
  support::write_small_head<support::SmallEncoder>(directory / "vectors", {.architecture = "BertModel"});
  serving::Models models;
  const auto info_with = [&](const char* name) {
    models.put(support::open_served(directory / name, name));
    return nlohmann::json::parse(serving::tei::info_text(models, {}));
  };
  info_with("words");
  const auto vectors = info_with("vectors"), classes = info_with("classes");
  CHECK(vectors["model_id"] == "vectors");
  CHECK(vectors["model_type"]["embedding"]["pooling"] == "mean");
  CHECK(classes["model_id"] == "classes");
  CHECK(classes["model_type"]["classifier"]["label2id"] == nlohmann::json{{"red", 0}, {"bird", 1}});
}

TEST_CASE("a text that is too long for an embedding is refused unless the request has truncate") {
  const support::TemporaryDirectory directory;
  support::write_small_head<support::SmallEncoder>(directory / "vectors", {.architecture = "BertModel"});
  support::Asked asked;
  asked.models.put(support::open_served(directory / "vectors", "vectors"));
  std::string text;
  for (int i = 0; i < 23; ++i) text += "red ";
  const std::string body = "{\"inputs\": \"" + text + "\"";
  CHECK(asked.error("/embed", body + "}")
            .starts_with("422: Input validation error: inputs: `inputs` must have less than 25 tokens"));
  CHECK(asked("POST", "/embed", body + ", \"truncate\": true}").status == 200);
}
