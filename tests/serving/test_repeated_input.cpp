// Refusals and waiting requests keep little of what a request has, however much that is.
#include <doctest/doctest.h>

#include "serving/asked.h"

using namespace bertrand;

namespace {

struct Setting : support::Asked {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_classifier(directory / "classes");
    models.put(support::open_served(directory / "classes", "classes"));
  }
};

}  // namespace

TEST_CASE("a refusal that repeats what a request has is short, and whole characters of UTF-8") {
  const Setting setting;
  std::string name, keys;
  while (name.size() < 100'000) name += "é";
  for (int i = 0; i < 10'000; ++i) keys += fmt::format(R"("{}": 1,)", i);
  const auto error = [&](const std::string& target, const std::string& body) {
    const serving::Response response = setting("POST", target, body);
    CHECK(response.status >= 400);
    CHECK(response.body.size() < 2000);
    return nlohmann::json::parse(response.body).at("error").get<std::string>();
  };
  CHECK(error("/v1/models/classes:predict", R"({"signature_name": ")" + name + "\"}").ends_with("é…"));
  CHECK(error("/v2/models/classes/infer",
              R"({"inputs": [{"name": ")" + name + R"(", "datatype": "BYTES", "shape": [],)" + R"("data": []}]})")
            .ends_with("é…"));
  CHECK(error("/predict", "{" + keys + R"("x": 1})").ends_with("…"));
}

TEST_CASE("a refusal of 1000 bytes is whole, and a longer one is cut") {
  const auto text = [](const std::string& message) {
    const serving::Response response = serving::refusal({.method = "GET", .target = "/x", .body = ""}, 400, message);
    return nlohmann::json::parse(response.body).at("error").get<std::string>();
  };
  CHECK(text(std::string(1000, 'a')) == std::string(1000, 'a'));
  CHECK(text(std::string(1001, 'a')) == std::string(1000, 'a') + "…");
  CHECK(text(std::string(1001, '\x80')) == "…");  // no character at all
}

TEST_CASE("a request of KServe has at most 16 outputs") {
  const Setting setting;
  const auto error = [&](int count) {
    std::string outputs = R"({"name": "probabilities"})";
    for (int i = 1; i < count; ++i) outputs += R"(, {"name": "probabilities"})";
    return setting.error(
        "/v2/models/classes/infer",
        R"({"inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["red"]}], "outputs": [)" + outputs +
            "]}");
  };
  CHECK(error(17) == "400: outputs: expected at most 16, got 17");
  CHECK(error(16).find("at most 16") == std::string::npos);
}

TEST_CASE("a request of KServe has at most 16 inputs, and ids are whole numbers of one of two types") {
  const Setting setting;
  const auto error = [&](const std::string& inputs) {
    return setting.error("/v2/models/classes/infer", R"({"inputs": [)" + inputs + "]}");
  };
  std::string texts = R"({"name": "text", "datatype": "BYTES", "shape": [1], "data": ["red"]})";
  for (int i = 1; i < 16; ++i)
    texts += fmt::format(R"(, {{"name": "{}", "datatype": "BYTES", "shape": [1], "data": ["red"]}})", i);
  CHECK(error(texts).starts_with("400: inputs: expected input_ids, or texts: "));
  const auto ids = [](const std::string& type, const std::string& id) {
    return R"({"name": "input_ids", "shape": [1, 3], "datatype": ")" + type + R"(", "data": [2, )" + id + ", 3]}";
  };
  CHECK(error(ids("INT32", "5")) == "200: ");
  CHECK(error(ids("FP32", "5")) == "400: inputs: input_ids: datatype: expected INT64 or INT32, got \"FP32\"");
  CHECK(error(ids("INT64", "2147483647")) ==
        "400: inputs[0]: input_ids: expected numbers from 0 to 14, got 2147483647 at place 1");
}

TEST_CASE("the health that KServe tells is asked for by GET at its own paths") {
  const Setting setting;
  CHECK(setting("GET", "/v2/health/live").status == 200);
  for (const auto& [method, path] : {std::pair("POST", "/v2/health/live"), {"GET", "/v2/health"}}) {
    CAPTURE(path);
    CHECK(setting(method, path).status == 404);
  }
}
