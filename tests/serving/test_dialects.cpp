// Every head through every dialect, and the errors of text-embeddings-inference and KServe.
#include <doctest/doctest.h>

#include "bert/network/bert.h"
#include "serving/asked.h"
#include "support/refusal.h"

using namespace bertrand;
using io::Json;

namespace {

/// A model of each head, which are small and untrained.
class Setting : public support::Asked {
 public:
  Setting() {
    support::write_small_classifier(directory_ / "classes");
    support::write_small_head<bert::ForSequenceClassification>(
        directory_ / "number",
        {.architecture = "BertForSequenceClassification", .labels = {"LABEL_0"}, .problem_type = "regression"}, 1);
    support::write_small_labeller(directory_ / "words", {"O", "B-X", "I-X"});
    support::write_small_head<bert::ForQuestionAnswering>(directory_ / "answers",
                                                          {.architecture = "BertForQuestionAnswering"});
    support::write_small_head<bert::ForPretraining>(directory_ / "masks", {.architecture = "BertForPreTraining"});
    support::write_small_head<support::SmallEncoder>(directory_ / "vectors", {.architecture = "BertModel"});
    for (const char* name : {"classes", "words", "answers", "masks", "vectors"})
      models.put(support::open_served(directory_ / name, name));
  }
  std::filesystem::path operator/(const std::string& name) const { return directory_ / name; }

 private:
  support::TemporaryDirectory directory_;
};

}  // namespace

TEST_CASE("predict of text-embeddings-inference takes a text or a pair or a batch of them") {
  const Setting setting;
  const Json one = setting.json("/predict", R"({"inputs": "red fish"})");
  REQUIRE(one.size() == 3);
  CHECK(one[0]["score"] >= one[1]["score"]);
  CHECK(one[1]["score"] >= one[2]["score"]);
  CHECK(one[0].contains("label"));
  const Json pair = setting.json("/predict", R"({"inputs": ["red fish", "bird"]})");
  CHECK(pair != one);
  CHECK(setting.json("/predict", R"({"inputs": [["red fish"], ["red fish", "bird"]]})") == Json{one, pair});
  const Json raw = setting.json("/predict", R"({"inputs": "red fish", "raw_scores": true})");
  CHECK(raw[0]["label"] == one[0]["label"]);
  CHECK(raw != one);
  const auto refusal = [&](const std::string& inputs) {
    return setting.error("/predict", R"({"inputs": )" + inputs + "}");
  };
  const std::string before = "422: Input validation error: ";
  CHECK(refusal("[]") == "400: Input validation error: `inputs` cannot be empty");
  CHECK(refusal("\"\"") == "400: Input validation error: inputs: `inputs` cannot be empty");
  CHECK(refusal("\" \"") == "422: inputs: text: expected at least one token, got none");
  CHECK(refusal("3").starts_with(before + "inputs: expected a string, a pair of strings"));
  CHECK(refusal("[\"a\", \"b\", \"c\"]").starts_with(before + "inputs: expected a string, a pair of strings"));
  CHECK(refusal("[[\"red\"], [\"red\", 1]]").starts_with(before + "inputs[1]: expected a string, a pair of"));
  CHECK(refusal("[[\"red\"], [\"red\", \"\"]]") == "400: Input validation error: inputs[1]: `inputs` cannot be empty");
  CHECK(refusal("[[\"a\"],[\"a\"],[\"a\"],[\"a\"],[\"a\"]]") == before + "batch size 5 > maximum allowed batch size 4");
  std::string longer = "red";
  for (int i = 0; i < 30; ++i) longer += " red";
  CHECK(refusal("\"" + longer + "\"").starts_with(before + "inputs: `inputs` must have less than 25 tokens"));
  CHECK(setting("POST", "/predict", R"({"truncate": true, "inputs": ")" + longer + "\"}").status == 200);
  for (const std::string path : {"/", "/invocations"})
    CHECK(setting.json(path, R"({"inputs": "red fish"})") == setting.json("/predict", R"({"inputs": "red fish"})"));
  CHECK(setting.error("/", "{}").starts_with("422: Input validation error: inputs: "));
  CHECK(
      setting("POST", "/predict", R"({"truncation_direction": "Right", "prompt_name": null, "inputs": "a"})").status ==
      200);
  CHECK(setting.error("/predict", R"({"truncation_direction": "left", "inputs": "a"})") ==
        "422: Input validation error: truncation_direction: expected the default, which alone is served, got \"left\"");
  CHECK(setting.error("/embed", R"({"dimensions": 4, "inputs": "a"})") ==
        "422: Input validation error: dimensions: expected the default, which alone is served, got 4");
  CHECK(setting.error("/predict", "{}") ==
        before + "inputs: expected a text or a list, got none; the request has no keys");
  CHECK(setting.error("/predict", R"({"text": "a", "n": 1})") ==
        before + R"(inputs: expected a text or a list, got none; the request has "text", "n")");
  CHECK(setting.error("/predict", "x").starts_with("422: JSON Parse error: "));
  CHECK(nlohmann::json::parse(setting("POST", "/predict", "{}").body).at("error_type") == "Validation");
}

TEST_CASE("a pair is one text of those that a request may have") {
  const Setting setting;
  support::Asked one;
  one.max_texts = 1;
  for (const char* name : {"classes", "vectors"}) one.models.put(setting.models.find(name));
  CHECK(one("POST", "/predict", R"({"inputs": ["red fish", "bird"]})").status == 200);
  CHECK(one("POST", "/predict", R"({"inputs": [["red fish", "bird"]]})").status == 200);
  CHECK(one("POST", "/predict", R"({"inputs": [["red fish"], ["bird"]]})").status == 422);
  CHECK(one("POST", "/embed", R"({"inputs": ["red fish"]})").status == 200);
  CHECK(one("POST", "/embed", R"({"inputs": ["red fish", "bird"]})").status == 422);
}

TEST_CASE("embeddings have length one unless a request says otherwise") {
  const Setting setting;
  const Json vectors = setting.json("/embed", R"({"inputs": ["red fish", "the bird"]})");
  REQUIRE(vectors.size() == 2);
  double squares = 0;
  for (const Json& x : vectors[0]) squares += x.get<double>() * x.get<double>();
  CHECK(squares == doctest::Approx(1));
  CHECK(setting.json("/embed", R"({"inputs": "red fish"})") == Json::array({vectors[0]}));
  const Json plain = setting.json("/embed", R"({"inputs": "red fish", "normalize": false})");
  CHECK(plain != Json::array({vectors[0]}));
  CHECK(plain[0] == setting.json("/answer", R"({"model": "vectors", "text": "red fish"})")["answer"]["embedding"]);
  CHECK(setting.error("/embed", R"({"inputs": ["red", 5]})") == "422: inputs[1]: text: expected a string, got 5");
  CHECK(setting("GET", "/embed").status == 405);
  support::Asked other;
  other.models.put(setting.models.find("words"));
  CHECK(other.error("/embed", R"({"inputs": "red"})") == "424: Backend error: Model is not an embedding model");
  CHECK(other.error("/predict", R"({"inputs": "red"})") == "424: Backend error: Model is not a classifier model");
}

TEST_CASE("a classifier of any of one label is no regression") {
  Setting setting;
  support::write_small_head<bert::ForSequenceClassification>(setting / "toxic",
                                                             {.architecture = "BertForSequenceClassification",
                                                              .labels = {"toxic"},
                                                              .problem_type = "multi_label_classification"},
                                                             1);
  setting.models.put(support::open_served(setting / "toxic", "toxic"));
  for (const char* input : {R"({"name": "text", "shape": [1, 1], "datatype": "BYTES", "data": ["red fish"]})",
                            R"({"name": "input_ids", "shape": [1, 3], "datatype": "INT64", "data": [2, 5, 3]})"}) {
    const Json answer = setting.json("/v2/models/toxic/infer", std::string(R"({"inputs": [)") + input + "]}");
    CHECK(answer["outputs"][0]["name"] == "probabilities");
  }
}

TEST_CASE("the memory of an answer is reckoned from its words, with a token or without") {
  const Setting setting;
  const serving::ModelPointer model = setting.models.find("words");
  std::vector<std::string> words(10'000);
  words[0] = "red";
  const inference::Query query = model->predictor().encode({{"words", words}}, "here");
  CHECK(query.sequences.size() == 1);
  CHECK(model->bytes_of(query) > words.size() * 1600);
}

TEST_CASE("the memory of an answer is reckoned to be more than its text and less than a megabyte") {
  const Setting setting;
  std::vector<std::string> labels;
  for (int i = 0; i < 200; ++i) labels.push_back(fmt::format("label {}", i));
  support::write_small_classifier(setting / "many", labels);
  support::write_small_labeller(setting / "tags", labels);
  std::vector<std::int32_t> masks(24, 4);  // of the most tokens, all but two [MASK]
  masks.front() = 2, masks.back() = 3;
  const std::vector<std::int32_t> few = {2, 5, 3};
  for (const auto& [name, ids] : {std::pair("many", few), {"tags", masks}, {"answers", few}, {"masks", masks}}) {
    CAPTURE(name);
    serving::Question question{.model = support::open_served(setting / name, name)};
    const std::vector<std::int32_t> types(ids.size(), 0);
    question.queries.push_back(
        question.model->predictor().encode_ids({.sequence = {.token_ids = ids, .token_types = types}}, "here"));
    const std::size_t bytes = question.model->bytes_of(question.queries[0]);
    CHECK(bytes > io::json_text(support::answers_to(question)[0]).size());
    CHECK(bytes < 1'000'000);
  }
}

TEST_CASE("infer of KServe takes texts or ids and answers these with tensors") {
  const Setting setting;
  const Json texts = setting.json("/v2/models/classes/infer", R"({"id": "7", "inputs": [
      {"name": "text", "shape": [2, 1], "datatype": "BYTES", "data": ["red fish", "the bird"]}]})");
  CHECK(texts["model_name"] == "classes");
  CHECK(texts["model_version"] == "1");
  CHECK(texts["id"] == "7");
  CHECK(texts["outputs"][0]["name"] == "probabilities");
  CHECK(texts["outputs"][0]["datatype"] == "FP32");
  CHECK(texts["outputs"][0]["shape"] == Json{2, 3});
  CHECK(texts["outputs"][0]["data"].size() == 6);
  CHECK(texts["outputs"][1]["name"] == "label");
  CHECK(texts["outputs"][1]["shape"] == Json::array({2}));
  const Json ids = setting.json("/v2/models/classes/versions/1/infer", R"({"inputs": [
      {"name": "input_ids", "shape": [2, 4], "datatype": "INT64", "data": [[2, 5, 8, 3], [2, 12, 9, 3]]},
      {"name": "attention_mask", "shape": [2, 4], "datatype": "INT64", "data": [1, 1, 1, 1, 1, 1, 1, 1]}]})");
  CHECK(ids["outputs"][0] == texts["outputs"][0]);
  CHECK(ids["outputs"].size() == 1);
  const Json pair = setting.json("/v2/models/classes/infer", R"({"inputs": [
      {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["red"]},
      {"name": "text_pair", "shape": [1], "datatype": "BYTES", "data": ["fish"]}]})");
  CHECK(pair["outputs"][0] == setting.json("/v2/models/classes/infer", R"({"inputs": [
      {"name": "input_ids", "shape": [1, 5], "datatype": "INT64", "data": [2, 5, 3, 8, 3]},
      {"name": "token_type_ids", "shape": [1, 5], "datatype": "INT64", "data": [0, 0, 0, 1, 1]}]})")["outputs"][0]);
  const auto outputs_for_ids = [&](const std::string& model) {
    return setting.json("/v2/models/" + model + "/infer", R"({"inputs": [
        {"name": "input_ids", "shape": [2, 4], "datatype": "INT64", "data": [2, 5, 8, 3, 2, 5, 3, 0]},
        {"name": "attention_mask", "shape": [2, 4], "datatype": "INT64", "data": [1, 1, 1, 1, 1, 1, 1, 0]}]})")
        ["outputs"];
  };
  const Json labels = outputs_for_ids("words");
  CHECK(labels.size() == 1);
  CHECK(labels[0]["name"] == "probabilities");
  CHECK(labels[0]["datatype"] == "FP32");
  const std::size_t count = labels[0]["shape"][2];
  CHECK(labels[0]["shape"] == Json{2, 4, count});
  CHECK(labels[0]["data"].size() == 8 * count);
  CHECK(labels[0]["data"].back() == 0.0);
  const Json spans = outputs_for_ids("answers");
  CHECK(spans.size() == 2);
  CHECK(spans[0]["name"] == "start_logits");
  CHECK(spans[1]["name"] == "end_logits");
  CHECK(spans[1]["shape"] == Json{2, 4});
  CHECK(spans[1]["data"].size() == 8);
  const Json words = setting.json("/v2/models/words/infer", R"({"outputs": [{"name": "answer"}], "inputs": [
      {"name": "text", "shape": [1], "datatype": "BYTES", "data": ["red fish"]}]})");
  CHECK(nlohmann::json::parse(words["outputs"][0]["data"][0].get<std::string>()).contains("entities"));
  const auto refusal = [&](const std::string& inputs) {
    return setting.error("/v2/models/classes/infer", R"({"inputs": [)" + inputs + "]}");
  };
  CHECK(refusal("") == "400: inputs: expected 1 to 16 tensors, got 0");
  for (const auto& [rows, data] : {std::pair(0, ""), {5, R"("a", "a", "a", "a", "a")"}})
    CHECK(refusal(fmt::format(R"({{"name": "text", "shape": [{}], "datatype": "BYTES", "data": [{}]}})", rows, data)) ==
          fmt::format("400: expected 1 to 4 texts in a request, got {}", rows));
  CHECK(refusal(R"({"name": "text", "shape": [2], "datatype": "BYTES", "data": ["red"]})") ==
        "400: inputs: text: data: expected 2 values as shape [2] says, got 1");
  CHECK(refusal(R"({"name": "text", "shape": [-1], "datatype": "BYTES", "data": ["red"]})")
            .starts_with("400: inputs: text: shape: "));
  CHECK(refusal(R"({"name": "text", "shape": [9223372036854775807, 2], "datatype": "BYTES", "data": ["red"]})") ==
        "400: inputs: text: shape: expected whole numbers, at most 16777216, got [9223372036854775807,2]");
  CHECK(refusal(R"({"name": "text", "shape": [1], "datatype": "FP32", "data": [1]})")
            .starts_with("400: inputs: text: expected input_ids"));
  CHECK(refusal(R"({"name": "input_ids", "shape": [1, 1], "datatype": "INT64", "data": [99]})") ==
        "400: inputs[0]: input_ids: expected numbers from 0 to 14, got 99 at place 0");
  CHECK(refusal(R"({"name": "input_ids", "shape": [16777216, 16777216], "datatype": "INT64", "data": []})")
            .starts_with("400: inputs: input_ids: data: "));
  CHECK(refusal(R"({"name": "input_ids", "shape": [3], "datatype": "INT64", "data": [2, 5, 3]})") ==
        "400: inputs: input_ids: shape: expected two dimensions, rows and tokens, got one");
  CHECK(refusal(R"({"name": "input_ids", "shape": [2, 3], "datatype": "INT64", "data": [[2, 3], [2, 5, 8, 3]]})") ==
        "400: inputs: input_ids: data: expected values in one list, or in lists as shape [2,3] says, got "
        "[[2,3],[2,5,8,3]]");
  CHECK(refusal(R"({"name": "input_ids", "shape": [1, 2], "datatype": "INT64", "data": [[[2], [3]]]})")
            .starts_with("400: inputs: input_ids: data: expected values in one list"));
  const std::string text = R"({"name": "text", "shape": [1], "datatype": "BYTES", "data": ["red"]})";
  CHECK(refusal(text + "," + text) == "400: inputs: text: expected once, got it twice");
  std::string many = text;
  for (int i = 0; i < 16; ++i) many += R"(,{"name": ")" + std::to_string(i) + text.substr(text.find("\", \"shape"));
  CHECK(refusal(many) == "400: inputs: expected 1 to 16 tensors, got 17");
  CHECK(setting.error("/v2/models/classes/infer", R"({"outputs": [{"name": "none"}], "inputs": [)" + text + "]}") ==
        "400: outputs: expected one of probabilities, label, got \"none\"");
  const std::string ids_alone = R"({"name": "input_ids", "shape": [1, 1], "datatype": "INT64", "data": [5]})";
  CHECK(refusal(ids_alone + R"(,{"name": "attention_masks", "shape": [1, 1], "datatype": "INT64", "data": [1]})") ==
        "400: inputs: expected attention_mask and token_type_ids beside input_ids, got \"attention_masks\"");
  CHECK(refusal(text + R"(,{"name": "foo", "shape": [1], "datatype": "BYTES", "data": ["red"]})") ==
        "400: inputs: expected input_ids, or texts: text, text_pair, choices, words, question, context, got \"foo\"");
  const std::string labelled = text + R"(,{"name": "label_ids", "shape": [1], "datatype": "INT32", "data": [0]})";
  CHECK(setting.json("/v2/models/classes/infer", R"({"inputs": [)" + labelled + "]}").contains("outputs"));
  CHECK(setting.error("/v2/models/none/infer", "{}").starts_with("404: "));
  CHECK(setting("GET", "/v2/health/ready").status == 200);
  CHECK(setting("GET", "/v2/health/live").body == R"({"live":true})");
  CHECK(setting("GET", "/v2/models/classes/ready").status == 200);
  const auto output = [&](const std::string& model) {
    return nlohmann::json::parse(setting("GET", "/v2/models/" + model).body).at("outputs").back();
  };
  CHECK(output("classes") == nlohmann::json::parse(R"({"name": "label", "datatype": "BYTES", "shape": [-1]})"));
  CHECK(output("words") == nlohmann::json::parse(R"({"name": "answer", "datatype": "BYTES", "shape": [-1]})"));
  const auto described = [&](const std::string& model, const char* list) {
    const auto metadata = nlohmann::json::parse(setting("GET", "/v2/models/" + model).body);
    std::string names;
    for (const auto& each : metadata.at(list)) names += each.at("name").get<std::string>() + " ";
    return names;
  };
  CHECK(described("answers", "inputs") == "question context input_ids attention_mask token_type_ids ");
  CHECK(described("answers", "outputs") == "start_logits end_logits answer ");
  CHECK(described("words", "outputs") == "probabilities answer ");
  CHECK(described("masks", "outputs") == "answer ");
  CHECK(output("vectors") == nlohmann::json::parse(R"({"name": "embedding", "datatype": "FP32", "shape": [-1, -1]})"));
  support::Asked number;
  number.models.put(support::open_served(setting / "number", "number"));
  const Json score = number.json("/v2/models/number/infer", R"({"inputs": [)" + text + "]}")["outputs"][0];
  CHECK(score["name"] == "logits");
  CHECK(score["shape"] == Json{1, 1});
  const auto metadata = nlohmann::json::parse(number("GET", "/v2/models/number").body);
  CHECK(metadata.at("outputs")[0].at("name") == "logits");
  CHECK(setting("GET", "/v2").status == 200);
  CHECK(setting("GET", "/v2/models").status == 404);
}

TEST_CASE("what is no id, no shape and no path of KServe's protocol is refused") {
  const Setting setting;
  const auto infer = [&](const std::string& kind, const std::string& shape, const std::string& data) {
    return setting("POST", "/v2/models/classes/infer",
                   R"({"inputs": [{"name": )" + kind + R"(, "shape": )" + shape + R"(, "data": )" + data + "}]}")
        .status;
  };
  const auto status = [&](const std::string& shape, const std::string& data) {
    return infer(R"("input_ids", "datatype": "INT64")", shape, data);
  };
  CHECK(status("[1, 3]", "[2, 5, 3]") == 200);
  for (const char* id : {"5.5", "5.0", "\"5\"", "true", "null", "{}", "-1", "4294967301"}) {
    CAPTURE(id);
    CHECK(status("[1, 3]", fmt::format("[2, {}, 3]", id)) == 400);
  }
  CHECK(status("[]", "[2]") == 400);
  CHECK(status("[1, 1, 3]", "[[[2, 5, 3]]]") == 400);
  CHECK(infer(R"("text", "datatype": "BYTES")", "[1, 1]", R"(["red"])") == 200);
  CHECK(infer(R"("text", "datatype": "BYTES")", "[1, 1, 1]", R"(["red"])") == 400);
  CHECK(setting("GET", "/v2/models/classes/versions/1").status == 200);
  for (const auto& [method, path] : {std::pair("GET", "/v2/models/classes/versions/2"),
                                     {"GET", "/v2/models/classes/none"},
                                     {"GET", "/v2/models/classes/versions"},
                                     {"POST", "/v2/models/classes"},
                                     {"POST", "/v2/models/classes/ready"},
                                     {"GET", "/v2/models/classes/infer"},
                                     {"POST", "/v2"}}) {
    CAPTURE(path);
    CHECK(setting(method, path).status == 404);
  }
}

TEST_CASE("every head answers with its tokens and over TensorFlow's route by text and by ids") {
  const Setting setting;
  const std::pair<std::string, std::string> asked[] = {{"classes", R"("text": "red fish", "text_pair": "bird")"},
                                                       {"words", R"("text": "red fish")"},
                                                       {"answers", R"("question": "red", "context": "the fish")"},
                                                       {"masks", R"("text": "red [MASK]")"},
                                                       {"vectors", R"("text": "red fish")"}};
  for (const auto& [name, request] : asked) {
    CAPTURE(name);
    const Json answer = setting.json("/answer", "{\"model\": \"" + name + "\", " + request + "}");
    CHECK(answer["tokens"][0].front() == "[CLS]");
    CHECK(answer["tokens"][0].back() == "[SEP]");
    CHECK(answer["cut"] == false);
    const std::string path = "/v1/models/" + name + ":predict";
    CHECK(setting.json(path, "{\"instances\": [{" + request + "}]}")["predictions"].size() == 1);
    CHECK(setting.json(path, R"({"instances": [{"input_ids": [2, 5, 4, 3]}, {"input_ids": [2, 4, 3]}]})")["predictions"]
              .size() == 2);
  }
  const Json spans =
      setting.json("/v1/models/answers:predict", R"({"inputs": {"input_ids": [[2, 5, 3, 8, 3], [2, 5, 3, 8, 3]]}})");
  CHECK(spans["outputs"]["start_logits"].size() == 2);
  CHECK(spans["outputs"]["end_logits"][1].size() == 5);
  // Rows of one length have outputs of one length, whatever their masks say.
  for (const std::string path : {"/v1/models/words:predict", "/v1/models/answers:predict"}) {
    const Json padded = setting.json(
        path, R"({"inputs": {"input_ids": [[2, 5, 8, 3], [2, 5, 3, 0]], "input_mask": [[1, 1, 1, 1], [1, 1, 1, 0]]}})");
    const Json& outputs = padded["outputs"].is_object() ? padded["outputs"]["end_logits"] : padded["outputs"];
    CHECK(outputs[0].size() == 4);
    CHECK(outputs[1].size() == 4);
    const Json alone = setting.json(path, R"({"instances": [{"input_ids": [2, 5, 3]}]})")["predictions"][0];
    const Json& rows = alone.is_object() ? alone["end_logits"] : alone;
    CHECK(rows.size() == 3);
    CHECK(outputs[1][0] == rows[0]);
  }
  CHECK(setting.error("/v1/models/masks:predict", R"({"instances": [{"input_ids": [2, 5, 3]}]})") ==
        "400: instances[0]: input_ids: expected [MASK], got none");
  CHECK(setting.error("/answer", R"({"model": "none", "text": "x"})").starts_with("404: model: expected one "));
  support::Asked number;
  number.models.put(support::open_served(setting / "number", "number"));
  CHECK(number.json("/v1/models/number:predict", R"({"instances": ["red", "fish"]})")["predictions"][0].size() == 1);
}

TEST_CASE("a model without room for a text is refused") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "m");
  const std::filesystem::path file = directory / "m/config.json";
  auto config = io::read_json(file);
  config["max_position_embeddings"] = 1;
  support::write_text(file, config.dump());
  CHECK(support::refusal(Failure::model, [&] { support::open_served(directory / "m", "m"); }) ==
        file.string() + ": max_position_embeddings: expected at least 3 to read a text, got 1");
}

TEST_CASE("/info is of the model that /predict asks, whichever comes first") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "words", {"O", "B-A"});
  support::write_small_classifier(directory / "classes", {"red", "bird"});
  serving::Models models;
  for (const char* name : {"words", "classes"}) models.put(support::open_served(directory / name, name));
  CHECK(nlohmann::json::parse(serving::tei::info_text(models, {}))["model_id"] == "classes");
  serving::Models others;
  others.put(support::open_served(directory / "words", "words"));
  CHECK(nlohmann::json::parse(serving::tei::info_text(others, {}))["model_type"] == nlohmann::json::object());
}

TEST_CASE("what is told without a model") {
  const Setting setting;
  CHECK(setting("GET", "/health").status == 200);
  CHECK(setting("GET", "/").body.starts_with("<!doctype html>"));
  CHECK(setting("GET", "/").content_type == "text/html; charset=utf-8");
  CHECK(setting("GET", "/").body.find("http") == std::string::npos);  // nothing from outside
  const auto info = nlohmann::json::parse(setting("GET", "/info").body);
  CHECK(info["model_id"] == "classes");
  CHECK(info["model_type"]["classifier"]["id2label"]["1"] == "bird");
  CHECK(info["max_input_length"] == 24);
  CHECK(nlohmann::json::parse(setting("GET", "/models").body)[1]["task"] == "tokens");
  CHECK(setting("GET", "/metrics").body.find("\nte_queue_size 0\n") != std::string::npos);
  CHECK(setting("GET", "/none").status == 404);
  CHECK(setting.error("/none", "") == "404: expected a path that is served, got POST /none");
  CHECK(setting.error("/answer", "", "PUT") == "405: /answer: expected POST, got PUT");
  CHECK(setting("PUT", "/answer").allow == "POST");
  CHECK(setting("GET", "/embed").allow == "POST");
  for (const std::string path : {"/health", "/info", "/"}) {
    CHECK(setting("DELETE", path).status == 405);
    CHECK(setting("DELETE", path).allow == (path == "/" ? "GET, HEAD, POST" : "GET, HEAD"));
  }
  CHECK(setting("DELETE", "/none").allow.empty());
  CHECK(setting("HEAD", "/health").status == 200);
}
