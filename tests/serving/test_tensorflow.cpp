// TensorFlow Serving's requests, answers and errors.
#include <doctest/doctest.h>

#include "io/base64.h"
#include "serving/asked.h"
#include "serving/tensorflow.h"

using namespace bertrand;
using io::Json;

namespace {

class Setting : public support::Asked {
 public:
  Setting() {
    support::write_small_classifier(directory_ / "half");
    models.put(support::open_served(directory_ / "half", "half", 7));
  }
  Json predict(const std::string& body) const { return json("/v1/models/half:predict", body); }
  std::string refusal(const std::string& body) const { return error("/v1/models/half:predict", body); }

 private:
  support::TemporaryDirectory directory_;
};

/// 66 and more levels.
std::string nested(int levels) { return std::string(static_cast<std::size_t>(levels), '['); }

}  // namespace

TEST_CASE("numbers and lists are printed as TensorFlow Serving prints them") {
  using serving::tensorflow::column_text;
  using serving::tensorflow::row_text;
  CHECK(row_text({Json{0.608512461f, 0.391487628f}}) ==
        "{\n    \"predictions\": [[0.608512461, 0.391487628]\n    ]\n}");
  CHECK(row_text({2.5, 3.0, 4.5}) == "{\n    \"predictions\": [2.5, 3.0, 4.5\n    ]\n}");
  CHECK(row_text({Json::array({9000000.0f, 3e-5f, 0.2f}), Json::array({-1.0f, 1e-30f, 1 / 3.0f})}) ==
        "{\n    \"predictions\": [[9e+06, 3e-05, 0.2], [-1.0, 1e-30, 0.333333343]\n    ]\n}");
  CHECK(row_text({{{"a", Json::array({1.5})}, {"b", "x\"y"}}, {{"a", Json::array()}, {"b", 3}}}) ==
        "{\n    \"predictions\": [\n        {\n            \"a\": [1.5],\n            \"b\": \"x\\\"y\"\n        },\n"
        "        {\n            \"a\": [],\n            \"b\": 3\n        }\n    ]\n}");
  CHECK(column_text(Json::array({Json::array({0.5, 0.25})})) ==
        "{\n    \"outputs\": [\n        [\n            0.5,\n            0.25\n        ]\n    ]\n}");
}

TEST_CASE("base64 is that of RFC 4648, with or without its padding") {
  using io::from_base64;
  for (const auto& [text, bytes] : {std::pair("", ""),
                                    {"Zg==", "f"},
                                    {"Zm8=", "fo"},
                                    {"Zm9v", "foo"},
                                    {"Zm9vYg==", "foob"},
                                    {"Zm9vYg", "foob"},
                                    {"Zm9vYmE", "fooba"},
                                    {"Zm9vYmFy", "foobar"},
                                    {"++//", "\xfb\xef\xff"}}) {
    CAPTURE(text);
    CHECK(from_base64(text) == bytes);
    if (std::string_view(text).size() % 4 == 0) CHECK(io::to_base64(bytes) == text);
  }
  for (const char* text : {"Z", "Zm9vY", "Zg=", "Z===", "Zm9v====", "Zm 9", "Zm-_", "Zm9v\n"}) {
    CAPTURE(text);
    CHECK_FALSE(from_base64(text).has_value());
  }
}

TEST_CASE("ids become probabilities with and without mask and segments and labels") {
  const Setting setting;
  const std::string whole =
      R"({"instances": [{"input_ids": [2, 5, 8, 3, 0, 0], "input_mask": [1, 1, 1, 1, 0, 0], "segment_ids": [0, 0, 0, 0, 0, 0], "label_ids": [0]}]})";
  const Json answer = setting.predict(whole);
  REQUIRE(answer.at("predictions").size() == 1);
  REQUIRE(answer["predictions"][0].size() == 3);
  double sum = 0;
  for (const Json& share : answer["predictions"][0]) sum += share.get<double>();
  CHECK(sum == doctest::Approx(1));
  CHECK(setting.predict(R"({"signature_name": "serving_default", "instances": [{"input_ids": [2, 5, 8, 3]}]})") ==
        answer);
  CHECK(setting.predict(R"({"inputs": {"input_ids": [[2, 5, 8, 3]], "label_ids": [0], "input_mask": [[1, 1, 1, 1]]}})")
            .at("outputs") == answer.at("predictions"));
  // What is not looked at may be anything.
  CHECK(setting.predict(
            R"({"inputs": {"input_ids": [[2, 5, 8, 3]], "label_ids": 0, "unique_ids": [1, 2]}})")["outputs"] ==
        answer.at("predictions"));
  CHECK(setting.predict(R"({"inputs": {"text": ["red fish"], "label_ids": 0, "unique_ids": [1, 2]}})")["outputs"] ==
        answer.at("predictions"));
  // The text of these ids, in every form, beside a longer one.
  CHECK(setting.predict(R"({"instances": ["red fish", "the bird two"]})")["predictions"][0] ==
        answer["predictions"][0]);
  CHECK(setting.predict(R"({"instances": [{"b64": "cmVkIGZpc2g="}]})") == answer);
  CHECK(setting.predict(R"({"inputs": ["red fish"]})").at("outputs") == answer.at("predictions"));
  CHECK(setting.predict(R"({"inputs": {"text": ["red fish"]}})").at("outputs") == answer.at("predictions"));
  for (const char* one : {R"("red fish")", R"({"b64": "cmVkIGZpc2g="})"})
    CHECK(setting.predict(fmt::format(R"({{"inputs": {}}})", one)).at("outputs") == answer.at("predictions"));
  CHECK(setting.predict(R"({"instances": [{"input_ids": [2, 5, 8, 3]}, {"input_ids": [2, 12, 9, 11, 3]}]})") ==
        setting.predict(R"({"instances": ["red fish", "the bird two"]})"));
  CHECK(setting.predict(R"({"instances": [{"text": "red", "text_pair": "fish"}]})") ==
        setting.predict(R"({"instances": [{"input_ids": [2, 5, 3, 8, 3], "token_type_ids": [0, 0, 0, 1, 1]}]})"));
}

TEST_CASE("bad requests get the texts of TensorFlow Serving") {
  const Setting setting;
  CHECK(setting.refusal("") == "400: JSON Parse error: The document is empty");
  CHECK(setting.refusal("{\"instances\": [").starts_with("400: JSON Parse error: "));
  CHECK(setting.refusal(nested(65)) ==
        "400: JSON Parse error: expected at most 64 levels of values in each other, got more");
  CHECK(setting.refusal(R"({"instances": [{"input_ids": [NaN]}]})").starts_with("400: JSON Parse error: "));
  CHECK(setting.refusal("{\"instances\": [\"r\xFF\"]}").starts_with("400: JSON Parse error: "));
  CHECK(setting.refusal(R"({"instances": [1e999]})").starts_with("400: JSON Parse error: "));
  CHECK(
      setting.refusal(R"({"instances": [{"b64": "cmVkIP8="}]})") ==
      "400: Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: b64: expected a text in UTF-8, "
      "got other bytes");
  CHECK(setting.refusal(R"({"inputs": {"text": [{"b64": "cmVk?"}]}})") == "400: Unable to base64 decode");
  CHECK(setting.refusal(R"({"inputs": {"text": [{"b64": "cmVkIPe/v78="}]}})") ==
        "400: b64: expected a text in UTF-8, got other bytes");
  CHECK(setting.refusal("[1]") == "400: JSON Value: [1] Is not object");
  CHECK(setting.refusal("{}") == "400: Missing 'inputs' or 'instances' key");
  CHECK(setting.refusal(R"({"inputs": ["a"], "instances": ["a"]})")
            .find("Not formatted correctly expecting only one of "
                  "'inputs' or 'instances' keys to exist") != std::string::npos);
  CHECK(setting.refusal(R"({"instances": 1})") == "400: JSON Value: 1 Excepting 'instances' to be an list/array");
  CHECK(setting.refusal(R"({"instances": []})") == "400: JSON Value: [] No values in 'instances' array");
  CHECK(setting.refusal(R"({"signature_name": "x", "instances": ["red"]})") ==
        "400: Serving signature name: \"x\" not found in signature def");
  CHECK(setting.refusal(R"({"instances": [[2, 5, 3]]})") ==
        "400: instances is a plain list, but expecting list of objects as multiple input tensors required as per "
        "tensorinfo_map");
  CHECK(setting.refusal(R"({"instances": [{"input_ids": [2]}, "red"]})") ==
        "400: Expecting object but got list at item 1 of input list");
  CHECK(setting.refusal(R"({"instances": ["red", {"input_ids": [2]}]})") ==
        "400: Expecting value/list but got object at item 1 of input list");
  CHECK(
      setting.refusal(R"({"instances": [{"input_ids": [2], "input_mask": [1]}, {"input_ids": [2]}]})") ==
      "400: Failed to process element: 1 of 'instances' list. JSON object: {\"input_ids\":[2]} keys must be equal to: "
      "input_ids,input_mask");
  CHECK(setting.refusal(R"({"instances": [{"input_mask": [1]}]})") ==
        "400: Failed to process element: 0 of 'instances' list. JSON object: {\"input_mask\":[1]} keys must be equal "
        "to: input_ids,input_mask,segment_ids");
  CHECK(setting.refusal(R"({"instances": [{"input_ids": [2], "ids": [1]}]})") ==
        "400: Failed to process element: 0 key: ids of 'instances' list. Error: INVALID_ARGUMENT: JSON object: does "
        "not have named input: ids");
  CHECK(setting.refusal(R"({"instances": [{"b64": "cmVk", "text": "red"}]})").ends_with("named input: b64"));
  CHECK(setting.refusal(R"({"inputs": {"input_mask": [[1]]}})") ==
        "400: Missing named input: input_ids in 'inputs' object.");
  CHECK(setting.refusal(R"({"inputs": {"text": "red"}})") == "400: inputs: text: expected a list, got \"red\"");
  CHECK(setting.refusal(R"({"inputs": 3})").starts_with("400: inputs is a plain value/list, but expecting an object "));
  CHECK(setting.refusal(R"({"inputs": {"input_ids": [[2], [3]], "input_mask": [[1]]}})") ==
        "400: inputs: input_mask: Encountered list at unexpected size: 1 at level: 0 expected size: 2");
  CHECK(setting.refusal(R"({"inputs": {"text_pair": [], "text": ["red"]}})") ==
        "400: inputs: text: Encountered list at unexpected size: 1 at level: 0 expected size: 0");
  CHECK(setting.refusal(R"({"inputs": {"input_ids": [[2, 0]], "input_msk": [[1, 0]]}})") ==
        "400: inputs: expected attention_mask and token_type_ids beside input_ids, got \"input_msk\"");
  CHECK(setting.refusal(R"({"inputs": {"text": ["red"], "text_pear": ["fish"]}})") ==
        "400: inputs: expected input_ids, or texts: text, text_pair, choices, words, question, context, got "
        "\"text_pear\"");
  CHECK(setting.refusal(R"({"inputs": {"text": ["red"], "input_ids": [[2]]}})") ==
        "400: inputs: expected attention_mask and token_type_ids beside input_ids, got \"text\"");
  CHECK(setting.predict(R"({"instances": ["a", "b", "c", "d"]})")["predictions"].size() == 4);
  for (const char* many : {R"({"instances": ["a", "b", "c", "d", "e"]})", R"({"inputs": ["a", "b", "c", "d", "e"]})",
                           R"({"inputs": {"text": ["a", "b", "c", "d", "e"]}})"})
    CHECK(setting.refusal(many) == "400: expected 1 to 4 texts in a request, got 5");
  CHECK(setting.refusal(R"({"instances": ["red", ""]})") ==
        "400: instances[1]: text: expected at least one token, got none");
}

TEST_CASE("ids that the model does not have are refused with their place") {
  const Setting setting;
  const auto refusal = [&](const std::string& instance) {
    const std::string text =
        setting.refusal(R"({"instances": [{"input_ids": [2, 3]}, {"input_ids": )" + instance + "}]}");
    const std::string before = "400: Failed to process element: 1 of 'instances' list. Error: INVALID_ARGUMENT: ";
    return text.starts_with(before) ? text.substr(before.size()) : text;
  };
  CHECK(refusal("\"2\"") == "JSON Value: \"2\" found at incorrect level: 0 in the JSON DOM. Expected at level: 1");
  CHECK(refusal("[\"2\"]") == "JSON Value: \"2\" Type: String is not of expected type: int32");
  CHECK(refusal("[1.0]") == "JSON Value: 1.0 Type: Number is not of expected type: int32");
  CHECK(refusal("[4294967298]") == "JSON Value: 4294967298 Type: Number is not of expected type: int32");
  CHECK(refusal("[18446744073709551615]") ==
        "JSON Value: 18446744073709551615 Type: Number is not of expected type: int32");
  CHECK(refusal("[[2]]") == "Encountered list at unexpected level: 1 expected < 1");
  CHECK(refusal("[2, 15]") == "400: instances[1]: input_ids: expected numbers from 0 to 14, got 15 at place 1");
  CHECK(refusal("[-1]") == "400: instances[1]: input_ids: expected numbers from 0 to 14, got -1 at place 0");
  CHECK(refusal("[]") == "400: instances[1]: input_ids: expected 1 to 24 ids, got 0");
  const std::string many = "[2" + [] {
    std::string ids;
    for (int i = 0; i < 24; ++i) ids += ",5";
    return ids;
  }() + "]";
  CHECK(refusal(many) == "400: instances[1]: input_ids: expected 1 to 24 ids, got 25");
  const auto masked = [&](const std::string& more) {
    return setting.refusal(R"({"instances": [{"input_ids": [2, 5, 3], )" + more + "}]}");
  };
  CHECK(masked("\"input_mask\": [1, 1]").ends_with("instances[0]: Expecting tensor size: 3 but got: 2"));
  CHECK(masked("\"input_mask\": [1, 1, 0], \"segment_ids\": [0, 0]").ends_with("tensor size: 3 but got: 2"));
  CHECK(masked("\"input_mask\": [1, 0, 1]").ends_with("mask: expected ones and then zeros, got [1,0,1]"));
  CHECK(masked("\"input_mask\": [0, 0, 0]") == "400: instances[0]: input_ids: expected 1 to 24 ids, got 0");
  CHECK(masked("\"segment_ids\": [0, 0, 2]") ==
        "400: instances[0]: token_type_ids: expected numbers from 0 to 1, got 2 at place 2");
}

TEST_CASE("an input that has two names is refused under both, here and by KServe") {
  const Setting setting;
  for (const auto& [name, other] : {std::pair("attention_mask", "input_mask"), {"token_type_ids", "segment_ids"}}) {
    const std::string refused = fmt::format("expected {} or {}, got both", name, other);
    const auto ids = [&](const char* values) {
      return fmt::format(R"({{"input_ids": {0}, "{1}": {0}, "{2}": {0}}})", values, other, name);
    };
    CHECK(setting.refusal(R"({"instances": [)" + ids("[1, 1]") + "]}") ==
          "400: Failed to process element: 0 of 'instances' list. Error: INVALID_ARGUMENT: instances[0]: " + refused);
    CHECK(setting.refusal(R"({"inputs": )" + ids("[[1, 1]]") + "}") == "400: inputs[0]: " + refused);
    std::string tensors;
    for (const char* const each : {"input_ids", name, other})
      tensors += fmt::format(R"({}{{"name": "{}", "shape": [1, 2], "datatype": "INT64", "data": [1, 1]}})",
                             tensors.empty() ? "" : ", ", each);
    CHECK(setting.error("/v2/models/half/infer", R"({"inputs": [)" + tensors + "]}") == "400: inputs: " + refused);
  }
}

TEST_CASE("paths are those of TensorFlow Serving") {
  const Setting setting;
  const std::string body = R"({"instances": ["red"]})";
  CHECK(setting("POST", "/V1/Models/half:Predict", body).status == 200);
  CHECK(setting("POST", "/v1/models/half/versions/7:predict", body).status == 200);
  CHECK(setting("POST", "/v1/models/h%61lf:predict?x=1", body).status == 200);
  CHECK(setting.error("/v1/models/half/versions/8:predict", body) ==
        "404: Servable not found for request: Specific(half, 8)");
  CHECK(setting.error("/v1/models/none:predict", body) == "404: Servable not found for request: Latest(none)");
  CHECK(setting.error("/v1/models/half/labels/stable:predict", body) ==
        "400: Unrecognized servable version label: stable");
  CHECK(setting.error("/v1/models/half:predict", "", "GET") == "400: Malformed request: GET /v1/models/half:predict");
  CHECK(setting.error("/v1/models/half:ask", body) == "400: Malformed request: POST /v1/models/half:ask");
  for (const char* const path : {"versions/x:predict", "versions/:predict", "labels/:predict"})
    CHECK(setting.error(std::string("/v1/models/half/") + path, body).starts_with("400: Malformed request: POST "));
  CHECK(setting.error("/v1/models/half/versions/99999999999999999999:predict", body) ==
        "400: Failed to convert version: 99999999999999999999 to numeric.");
  CHECK(setting.error("/v1/other", "", "GET") == "400: Malformed request: GET /v1/other");
  CHECK(setting.error("/v1/models", "", "GET") == "400: Missing model name in request.");
  CHECK(setting.error("/v1/models/none", "", "GET") == "404: Could not find any versions of model none");
  CHECK(setting.error("/v1/models/half/versions/8", "", "GET") == "404: Could not find version 8 of model half");
  CHECK(setting.error("/v1/models/", "", "GET") == "400: Malformed request: GET /v1/models/");
  CHECK(setting.error("/v1/models/half:classify", body).starts_with("501: "));
  for (const std::string name : {"%zz", "half%4", "half%", "hal%6", "%-1", "%+1", "%6"})
    CHECK(setting.error("/v1/models/" + name + ":predict", body).starts_with("400: path: expected % and two digits, "));
  CHECK(setting.error("/v2x", "", "GET").starts_with("404: "));
}

TEST_CASE("status and metadata are those of a model with one signature") {
  const Setting setting;
  CHECK(setting("GET", "/v1/models/half").body ==
        "{\n \"model_version_status\": [\n  {\n   \"version\": \"7\",\n   \"state\": \"AVAILABLE\",\n   \"status\": "
        "{\n    \"error_code\": \"OK\",\n    \"error_message\": \"\"\n   }\n  }\n ]\n}\n");
  const auto metadata = nlohmann::json::parse(setting("GET", "/v1/models/half/versions/7/metadata").body);
  CHECK(metadata["model_spec"] == nlohmann::json::parse(R"({"name": "half", "signature_name": "", "version": "7"})"));
  const auto& signature = metadata["metadata"]["signature_def"]["signature_def"]["serving_default"];
  CHECK(signature["method_name"] == "tensorflow/serving/predict");
  CHECK(signature["inputs"]["input_ids"]["dtype"] == "DT_INT32");
  CHECK(signature["inputs"].size() == 3);
  CHECK(signature["outputs"]["probabilities"]["tensor_shape"]["dim"].size() == 2);
  CHECK(signature["outputs"]["probabilities"]["tensor_shape"]["dim"][1]["size"] == "3");
}
