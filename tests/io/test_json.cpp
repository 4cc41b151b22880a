#include "io/json.h"

#include <doctest/doctest.h>

#include "io/input_files.h"
#include "support/growth.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;

namespace {

std::string refusal(std::string_view text) {
  return support::refusal(Failure::input, [&] { parse_json(text, {"f", Failure::input}); });
}
std::string reading(const std::string& text, const std::function<void(JsonReader&)>& read) {
  const Json json = parse_json(text, {"f"});
  return support::refusal(Failure::model, [&] {
    JsonReader reader(json, {"f"});
    read(reader);
  });
}

}  // namespace

TEST_CASE("an object that gets more keys keeps the values that it has where they are") {
  Json object;
  append(object, "list", Json::array({"", ""}));
  const Json* const values = object["list"].get_ref<const Json::array_t&>().data();
  for (const char* key : {"a", "b", "c", "d", "e"}) append(object, key, 1);
  CHECK(object["list"].get_ref<const Json::array_t&>().data() == values);
  CHECK(json_text(object) == R"({"list":["",""],"a":1,"b":1,"c":1,"d":1,"e":1})");
}

TEST_CASE("JSON is read with its keys in order and written back the same") {
  const std::string text = R"({"b":1,"a":[true,null,-2,0.5,18446744073709551615],"c":{"":"\u00e9\"\n"},"d":[]})";
  CHECK(json_text(parse_json(text, {"f"})) ==
        R"({"b":1,"a":[true,null,-2,0.5,18446744073709551615],"c":{"":"é\"\n"},"d":[]})");
  CHECK(parse_json("3", {"f"}) == 3);
}

TEST_CASE("JSON that does not parse names the line, the byte and the reason") {
  CHECK(refusal("") == "f: expected JSON, got a syntax error at byte 1: unexpected end of input");
  CHECK(refusal("{\"a\": 1} {}") == "f: expected JSON, got a syntax error at byte 10: unexpected '{'");
  CHECK(refusal("{\n\"a\": nan}") == "f:2: expected JSON, got a syntax error at byte 9: invalid literal");
  CHECK(refusal("\"\xff\"")
            .starts_with("f: expected JSON, got a syntax error at byte 2: invalid string: ill-formed UTF-8"));
  CHECK(refusal("[1e999]") == "f: expected JSON, got a number that no double can hold");
  CHECK(refusal(std::string_view("[]\0", 3)) == "f: expected JSON, got a NUL at byte 3");
  for (const char* text : {R"(["a\u0000"])", R"({"a\u0000": 1})"})
    CHECK(refusal(text) == "f: expected text without \\u0000, got one");
}

TEST_CASE("whole numbers of more than 64 bits are rounded, kept as text or refused, as the reader wants") {
  const std::string text = "[18446744073709551616,-9223372036854775809,18446744073709551615,1e20]";
  const auto read = [&](LongNumber what) { return parse_json(text, {"f", Failure::input, what}); };
  CHECK(json_text(read(LongNumber::text)) ==
        R"(["18446744073709551616","-9223372036854775809",18446744073709551615,1e+20])");
  CHECK(read(LongNumber::round)[0] == 18446744073709551616.0);
  CHECK(support::refusal(Failure::input, [&] { read(LongNumber::refuse); }) ==
        "f: expected whole numbers of at most 64 bits, got 18446744073709551616; hint: write it as a string");
}

TEST_CASE("deep nesting and keys that come twice are refused at any level") {
  const std::string deep = std::string(64, '[') + std::string(64, ']');
  CHECK(parse_json(deep, {"f"}).is_array());
  CHECK(refusal("[" + deep + "]") == "f: expected at most 64 levels of values in each other, got more");
  std::string objects;
  for (int i = 0; i < 65; ++i) objects += R"({"a":)";
  CHECK(refusal(objects) == "f: expected at most 64 levels of values in each other, got more");
  CHECK(refusal(std::string(1'000'000, '[')) == "f: expected at most 64 levels of values in each other, got more");
  CHECK(refusal(R"({"a": 1, "b": 2, "a": 3})") == "f: \"a\": expected once, got it twice");
  CHECK(refusal(R"([{"x": {"b": 1, "b": 1}}])") == "f: \"b\": expected once, got it twice");
  CHECK_FALSE(try_parse_json("{").has_value());
  CHECK(try_parse_json("[1]") == Json{1});
}

TEST_CASE("keys are read built and written in a time that grows with their number and not with its square") {
  const double growth = support::growth_by_four(10'000, [](int keys) {
    Json object;
    for (int i = 0; i < keys; ++i) append(object, "key " + std::to_string(i), i);
    CHECK(parse_json(json_text(object), {"f"}).size() == static_cast<std::size_t>(keys));
    CHECK(shown(object) == "an object of " + std::to_string(keys) + " values");
  });
  CHECK(growth < 8);
}

TEST_CASE("text that is no UTF-8 is written as U+FFFD") {
  CHECK(json_text(Json("a\xff")) == "\"a\xEF\xBF\xBD\"");
  CHECK(shown(Json("a\xff")) == "\"a\\ufffd\"");
  CHECK(shown(Json(std::string(38, 'x'))) == "\"" + std::string(38, 'x') + "\"");
  CHECK(shown(Json(std::string(100, 'x'))) == "\"" + std::string(39, 'x') + "…\"");
}

TEST_CASE("typed values name file, key, what was expected and what was found") {
  CHECK(reading("[]", [](JsonReader&) {}) == "f: expected a JSON object, got []");
  CHECK(reading("{}", [](JsonReader& r) { r.whole("n", {0, 9}); }) == "f: n: expected an integer in [0, 9], got none");
  CHECK(reading("{\"n\": 10}", [](JsonReader& r) {
          r.whole("n", {0, 9});
        }) == "f: n: expected an integer in [0, 9], got 10");
  CHECK(reading("{\"n\": 18446744073709551615}", [](JsonReader& r) { r.whole("n", {}); }) ==
        "f: n: expected an integer in [0, 9223372036854775807], got 18446744073709551615");
  CHECK(reading("{\"n\": null}", [](JsonReader& r) {
          r.whole("n", {0, 9}, 3);
        }) == "f: n: expected an integer in [0, 9], got null");
  CHECK(reading("{\"x\": \"1\"}", [](JsonReader& r) {
          r.real("x", {0, 1});
        }) == "f: x: expected a number in [0, 1], got \"1\"");
  CHECK(reading("{\"t\": 1}", [](JsonReader& r) { r.text("t"); }) == "f: t: expected a string, got 1");
  CHECK(reading("{\"f\": 1}", [](JsonReader& r) { r.flag("f"); }) == "f: f: expected true or false, got 1");
  CHECK(reading("{\"o\": {\"x\": []}}", [](JsonReader& r) { r.object("o").text("x"); }) ==
        "f: o.x: expected a string, got []");
  CHECK(reading("{\"o\": 1}", [](JsonReader& r) { r.object("o"); }) == "f: o: expected an object, got 1");
  CHECK(reading("{}", [](JsonReader& r) { r.object("o"); }) == "f: o: expected an object, got none");
  CHECK(reading("{\"l\": {}}", [](JsonReader& r) { r.list("l"); }) == "f: l: expected a list, got {}");
  CHECK(reading("{\"k\": 1}", [](JsonReader& r) { r.expect("k", true); }) == "f: k: expected true, got 1");
  CHECK(reading("{\"k\": null}", [](JsonReader& r) {
          r.expect("k", true);
          CHECK(r.real("k", {}, 0.5) == 0.5);
          CHECK(r.text("none", "x") == "x");
          CHECK(r.asked_for() == std::vector<std::string>{"k", "k", "none"});
        }) == "");
}

TEST_CASE("the bounds of a number are numbers that it may be") {
  const std::string text = R"({"n": 0, "m": 9, "most": 9223372036854775807, "x": 0.25, "y": 0.5})";
  CHECK(reading(text, [](JsonReader& r) {
          CHECK(r.whole("n", {0, 9}) == 0);
          CHECK(r.whole("m", {0, 9}) == 9);
          CHECK(r.whole("most", {}) == 9223372036854775807);
          CHECK(r.real("x", {0.25, 0.5}) == 0.25);
          CHECK(r.real("y", {0.25, 0.5}) == 0.5);
        }) == "");
  for (const char* key : {"n", "m", "x", "y"}) {
    CAPTURE(key);
    CHECK(reading(text, [&](JsonReader& r) { r.real(key, {0.3, 0.4}); }) != "");
  }
}

TEST_CASE("a file of JSON that no model needs to be so large is refused before it is read") {
  const support::TemporaryDirectory directory;
  const std::filesystem::path file = directory / "config.json";
  support::write_text(file, "{}");
  CHECK(read_json(file) == Json::object());
  std::filesystem::resize_file(file, kMostSmallFile);
  CHECK(read_small_file(file, "JSON").size() == kMostSmallFile);
  std::filesystem::resize_file(file, kMostSmallFile + 1);  // zeros that take no room on the disk
  CHECK(support::refusal(Failure::model, [&] { read_json(file); }) ==
        file.string() + ": JSON: expected at most 33.6 MB, got 33554433 bytes");
}
