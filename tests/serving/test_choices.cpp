// A model of multiple choice through every dialect.
#include <doctest/doctest.h>

#include <cmath>

#include "serving/asked.h"

using namespace bertrand;
using io::Json;

namespace {

class Setting : public support::Asked {
 public:
  Setting() {
    support::write_small_head<bert::ForSequenceClassification>(directory_ / "choices",
                                                               {.architecture = "BertForMultipleChoice"}, Dim{1});
    models.put(support::open_served(directory_ / "choices", "choices"));
  }

 private:
  support::TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("a model of multiple choice answers texts in every dialect that has lists of them") {
  const Setting setting;
  const std::string request = R"("text": "red fish", "choices": ["bird", "two birds", "the"])";
  const Json answer = setting.json("/answer", "{" + request + "}");
  const Json& best = answer["answer"];
  CHECK(answer["tokens"].size() == 3);
  CHECK(answer["tokens"][1] == Json{"[CLS]", "red", "fish", "[SEP]", "two", "bird", "##s", "[SEP]"});
  CHECK(best["scores"].size() == 3);
  const Json predicted = setting.json("/v1/models/choices:predict", "{\"instances\": [{" + request + "}]}");
  for (std::size_t i = 0; i < 3; ++i)  // as of a classifier, its scores, in TensorFlow's digits
    CHECK(std::abs(predicted["predictions"][0][i].get<double>() - best["scores"][i].get<double>()) <= 1e-7);
  const Json inferred = setting.json("/v2/models/choices/infer", R"({"inputs": [
      {"name": "text", "datatype": "BYTES", "shape": [2], "data": ["red fish", "blue"]},
      {"name": "choices", "datatype": "BYTES", "shape": [2, 3],
       "data": ["bird", "two birds", "the", "one", "fish", "red"]}]})");
  REQUIRE(inferred["outputs"].size() == 1);
  CHECK(inferred["outputs"][0]["name"] == "answer");
  CHECK(Json::parse(inferred["outputs"][0]["data"][0].get<std::string>()) == best);
  CHECK(setting.error("/answer", R"({"text": "red", "choices": ["bird"]})") ==
        "400: request: choices: expected at least two, got 1");
  CHECK(setting.error("/predict", R"({"inputs": "red fish"})").starts_with("424: "));
}

TEST_CASE("lists of texts as tensors of KServe have two dimensions, and another shape is refused with the right one") {
  Setting setting;
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "words", {"O", "B-X"});
  setting.models.put(support::open_served(directory / "words", "words"));
  const Json expected = setting.json("/answer", R"({"model": "words", "words": ["red", "fish"]})")["answer"];
  for (const std::string name : {"words", "tokens", "choices"}) {
    CAPTURE(name);
    const std::string path = name == "choices" ? "/v2/models/choices/infer" : "/v2/models/words/infer";
    const auto body = [&](const std::string& type, const std::string& shape) {
      return R"({"inputs": [{"name": ")" + name + R"(", "datatype": ")" + type + R"(", "shape": )" + shape +
             R"(, "data": ["red", "fish"]}]})";
    };
    if (name != "choices")
      CHECK(Json::parse(setting.json(path, body("BYTES", "[1, 2]"))["outputs"][0]["data"][0].get<std::string>()) ==
            expected);
    const std::string before = "400: inputs: " + name + ": expected input_ids, or texts: BYTES of shape [N, K], got ";
    CHECK(setting.error(path, body("BYTES", "[2]")) == before + "BYTES of [2]");
    CHECK(setting.error(path, body("FP32", "[1, 2]")) == before + "FP32 of [1,2]");
  }
  CHECK(setting.error("/v2/models/words/infer",
                      R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1, 2], "data": ["a", "b"]}]})") ==
        "400: inputs: text: expected input_ids, or texts: BYTES of shape [N] or [N, 1], got BYTES of [1,2]");
}

TEST_CASE("the page has fields and a view for every head") {
  const std::string page = Setting()("GET", "/").body;
  for (const auto& [name, head] : inference::heads()) {
    CAPTURE(name);
    CHECK(page.find(fmt::format("  \"{}\": [[", name)) != std::string::npos);
    CHECK(page.find(fmt::format("  \"{}\"({{", name)) != std::string::npos);
  }
}

TEST_CASE("a choice as ids has its logit, and what is told of the model says so") {
  const Setting setting;
  const Json ids = setting.json("/v1/models/choices:predict", R"({"instances": [{"input_ids": [2, 5, 3, 8, 3]}]})");
  CHECK(ids["predictions"][0].size() == 1);
  const Json inferred = setting.json(
      "/v2/models/choices/infer",
      R"({"inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 5], "data": [2, 5, 3, 8, 3]}]})");
  CHECK(inferred["outputs"][0]["name"] == "logits");
  CHECK(std::abs(inferred["outputs"][0]["data"][0].get<double>() - ids["predictions"][0][0].get<double>()) <= 1e-6);
  const auto told = [&](const std::string& path) { return Json::parse(setting("GET", path).body); };
  const Json signature = told("/v1/models/choices/metadata")["metadata"]["signature_def"]["signature_def"];
  CHECK(signature["serving_default"]["outputs"]["logits"]["tensor_shape"]["dim"][1]["size"] == "1");
  const Json metadata = told("/v2/models/choices");
  std::vector<std::string> inputs, outputs;
  for (const Json& input : metadata["inputs"]) inputs.push_back(input["name"]);
  for (const Json& output : metadata["outputs"]) outputs.push_back(output["name"]);
  CHECK(inputs == std::vector<std::string>{"text", "choices", "input_ids", "attention_mask", "token_type_ids"});
  CHECK(outputs == std::vector<std::string>{"logits", "answer"});
}
