// text-embeddings-inference's errors, and what else only its clients ask.
#include "serving/tei.h"

#include <doctest/doctest.h>

#include <cmath>

#include "bert/network/heads.h"
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

TEST_CASE("a pair that the model cannot read is refused with its place in the request, not the model's") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForSequenceClassification>(
      directory / "one", {.architecture = "BertForSequenceClassification", .labels = {"a", "b"}, .types = 1}, 2);
  support::Asked asked;
  asked.models.put(support::open_served(directory / "one", "one"));
  const std::string rest = "text_pair: expected none, since the model has one token type";
  CHECK(asked.error("/predict", R"({"inputs": [["red"], ["red", "fish"], ["bird"]]})") == "422: inputs[1]: " + rest);
  CHECK(asked.error("/answer", R"({"text": "red", "text_pair": "fish"})") == "400: request: " + rest);
}

TEST_CASE("/rerank sorts texts by the probability of the second of two classes, or of the only label") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "three");
  support::write_small_classifier(directory / "turned", {"relevant", "other"});
  support::write_small_classifier(directory / "ranker", {"0", "1"});
  support::Asked asked;
  asked.models.put(support::open_served(directory / "three", "three"));
  asked.models.put(support::open_served(directory / "turned", "turned"));
  const std::string texts = R"("texts": ["bird", "fish fish", "the red bird"])";
  const std::string body = R"({"query": "red fish", )" + texts;
  CHECK(asked.error("/rerank", body + "}") == "424: Backend error: Model is not a re-ranker model");

  asked.models.put(support::open_served(directory / "ranker", "ranker"));
  const io::Json ranks = asked.json("/rerank", body + "}");
  REQUIRE(ranks.size() == 3);
  support::Asked alone;
  alone.models.put(asked.models.find("ranker"));
  const io::Json pairs = alone.json(
      "/predict", R"({"inputs": [["red fish", "bird"], ["red fish", "fish fish"], ["red fish", "the red bird"]]})");
  std::vector<bool> seen(3, false);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto index = ranks[i].at("index").get<std::size_t>();
    seen[index] = true;
    CHECK(ranks[i].size() == 2);
    if (i > 0) CHECK(ranks[i - 1]["score"].get<float>() >= ranks[i]["score"].get<float>());
    for (const io::Json& label : pairs[index])
      if (label["label"] == "1") CHECK(ranks[i]["score"].get<float>() == doctest::Approx(label["score"].get<float>()));
  }
  CHECK(seen == std::vector(3, true));

  const io::Json raw = asked.json("/rerank", body + R"(, "raw_scores": true, "return_text": true})");
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(raw[i]["index"] == ranks[i]["index"]);
    CHECK(raw[i]["text"] == io::Json::parse("{" + texts + "}")["texts"][raw[i]["index"].get<std::size_t>()]);
    const double odds = raw[i]["score"].get<double>();
    CHECK(ranks[i]["score"].get<double>() == doctest::Approx(1 / (1 + std::exp(-odds))));
  }

  support::write_small_head<bert::ForSequenceClassification>(
      directory / "one", {.architecture = "BertForSequenceClassification", .labels = {"LABEL_0"}}, 1);
  support::Asked one;
  one.models.put(support::open_served(directory / "one", "one"));
  const io::Json by_one = one.json("/rerank", R"({"query": "red fish", "texts": ["bird"]})"),
                 as_label = one.json("/predict", R"({"inputs": ["red fish", "bird"]})");
  CHECK(by_one == io::Json::array({{{"index", 0}, {"score", as_label[0]["score"]}}}));
}

TEST_CASE("a model of one label is a re-ranker to /info, and a query to / or /invocations goes to /rerank") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForSequenceClassification>(
      directory / "one", {.architecture = "BertForSequenceClassification", .labels = {"LABEL_0"}}, 1);
  support::Asked asked;
  asked.models.put(support::open_served(directory / "one", "one"));
  const auto type = nlohmann::json::parse(asked("GET", "/info").body).at("model_type");
  CHECK(type == nlohmann::json::parse(R"({"reranker": {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}})"));
  const std::string query = R"({"query": "red fish", "texts": ["bird"]})", inputs = R"({"inputs": "red fish"})";
  for (const std::string path : {"/", "/invocations"}) {
    CHECK(asked.json(path, query) == asked.json("/rerank", query));
    CHECK(asked.json(path, inputs) == asked.json("/predict", inputs));
  }
  CHECK(asked.error("/predict", query).starts_with("422: Input validation error: inputs: expected "));
}

TEST_CASE("what /rerank cannot read is refused in the words of text-embeddings-inference") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "ranker", {"0", "1"});
  support::write_small_head<bert::ForSequenceClassification>(directory / "both",
                                                             {.architecture = "BertForSequenceClassification",
                                                              .labels = {"a", "b"},
                                                              .problem_type = "multi_label_classification"},
                                                             2);
  support::Asked asked;
  asked.models.put(support::open_served(directory / "both", "both"));
  CHECK(asked.error("/rerank", R"({"query": "red", "texts": ["a"]})").starts_with("424"));
  asked.models.put(support::open_served(directory / "ranker", "ranker"));
  const std::string before = "422: Input validation error: ";
  CHECK(asked.error("/rerank", R"({"texts": ["a"]})") ==
        before + "query: expected a text, got none; the request has \"texts\"");
  CHECK(asked.error("/rerank", R"({"query": "a"})") ==
        before + "texts: expected a list of texts, got none; the request has \"query\"");
  CHECK(asked.error("/rerank", R"({"query": "a", "texts": "b"})") == before + "texts: expected a list, got \"b\"");
  CHECK(asked.error("/rerank", R"({"query": "a", "texts": []})") ==
        "400: Input validation error: `texts` cannot be empty");
  for (const std::string text : {"5", "null"})
    CHECK(asked.error("/rerank", R"({"query": "a", "texts": ["b", )" + text + "]}") ==
          before + "texts[1]: expected a string, got " + text);
  CHECK(asked.error("/rerank", R"({"query": "a", "texts": ["b", " "]})") ==
        "422: texts[1]: expected at least one token, got none");
  CHECK(asked.error("/rerank", R"({"query": " ", "texts": ["b"]})") ==
        "422: query: expected at least one token, got none");
  CHECK(asked.error("/rerank", R"({"query": 5, "texts": ["b"]})") == before + "query: expected a string, got 5");
  CHECK(asked.error("/rerank", R"({"query": "", "texts": ["b"]})") ==
        "400: Input validation error: `query` cannot be empty");
  const std::string most(std::size_t{2} << 20, 'a');
  CHECK(asked.error("/rerank", "{\"query\": \"" + most + R"(a", "truncate": true, "texts": ["b", "c"]})") ==
        "413: Input validation error: query: expected at most 2097152 bytes with 2 texts, got 2097153");
  CHECK(asked.error("/rerank", R"({"query": "a", "texts": ["b", "b", "b", "b", "b"]})") ==
        before + "batch size 5 > maximum allowed batch size 4");
  std::string longer = "red";
  for (int i = 0; i < 30; ++i) longer += " red";
  const std::string body = R"({"query": "red", "texts": [")" + longer + "\"]";
  CHECK(asked.error("/rerank", body + "}").starts_with(before + "texts[0]: `inputs` must have less than 25 tokens"));
  CHECK(asked("POST", "/rerank", body + R"(, "truncate": true})").status == 200);
  CHECK(asked.error("/rerank", "", "GET") == "405: /rerank: expected POST, got GET");
}
