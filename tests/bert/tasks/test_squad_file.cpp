#include "bert/tasks/squad_file.h"

#include <doctest/doctest.h>

#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

/// What is said against this text.
std::string refusal(const std::string& text) {
  return support::refusal(Failure::input, [&] { parse_squad(text, "f"); });
}

/// A file with one question, which has these further keys.
std::string with_question(const std::string& keys) {
  return R"({"data": [{"paragraphs": [{"context": "c", "qas": [{)" + keys + "}]}]}]}";
}

const std::string kQuestion = R"("id": "1", "question": "q", "answers": [])";

}  // namespace

TEST_CASE("a question has its paragraph and answers in whatever order the keys come") {
  const auto data = parse_squad(
      R"({"version": "2.0", "data": [{"title": "t", "paragraphs": [{"qas": [
        {"answers": [{"answer_start": 2, "text": "b\u00e9", "more": {"x": [1, {}]}}], "id": "1", "question": "q?"},
        {"question": "r?", "id": "2", "is_impossible": true, "plausible_answers": [{"text": 7, "answer_start": "x"}],
         "answers": []}], "context": "a b\u00e9"}]}, {"paragraphs": []}]})",
      "f");
  REQUIRE(data.size() == 1);
  CHECK(data[0].context == "a bé");
  REQUIRE(data[0].questions.size() == 2);
  const SquadQuestion &first = data[0].questions[0], &second = data[0].questions[1];
  CHECK(first.id == "1");
  CHECK(first.question == "q?");
  REQUIRE(first.answers.size() == 1);
  CHECK(first.answers[0].text == "bé");
  CHECK(first.answers[0].start == 2);
  CHECK_FALSE(first.is_impossible.has_value());
  CHECK(second.is_impossible == true);
  CHECK(second.answers.empty());
}

TEST_CASE("what is no SQuAD file is refused with its place") {
  CHECK(refusal("") == "f: expected JSON, got a syntax error at byte 1: unexpected end of input");
  CHECK(refusal("{\n\"data\": [}") == "f:2: expected JSON, got a syntax error at byte 12: unexpected '}'");
  CHECK(refusal(std::string("{}\0", 3)) == "f: expected JSON, got a NUL at byte 3");
  CHECK(refusal("[]") == "f: file: expected an object, got a list");
  CHECK(refusal("7") == "f: file: expected an object, got a number");
  CHECK(refusal("\"x\"") == "f: file: expected an object, got a text");
  CHECK(refusal("{}") ==
        "f: file: expected the key \"data\", got none; hint: the name of a file with a question a line ends in .jsonl");
  CHECK(refusal(R"({"data": {}})") == "f: data: expected a list, got an object");
  CHECK(refusal(R"({"data": 1})") == "f: data: expected a list, got a number");
  CHECK(refusal(R"({"data": [1]})") == "f: data[0]: expected an object, got a number");
  CHECK(refusal(R"({"data": [{"paragraphs": []}, []]})") == "f: data[1]: expected an object, got a list");
  CHECK(refusal(R"({"data": [], "data": []})") == "f: data: \"data\": expected once, got it twice");
  CHECK(refusal(with_question(R"("id": "1")")) ==
        "f: data[0].paragraphs[0].qas[0]: expected the key \"question\", got none");
  CHECK(refusal(with_question(R"("id": 5)")) == "f: data[0].paragraphs[0].qas[0].id: expected a text, got a number");
  CHECK(refusal(with_question(R"("id": {})")) ==
        "f: data[0].paragraphs[0].qas[0].id: expected a text or number, got an object");
  CHECK(refusal(with_question(kQuestion + R"(, "is_impossible": "no")")) ==
        "f: data[0].paragraphs[0].qas[0].is_impossible: expected true or false, got a text");
  CHECK(refusal(with_question(R"("id": "1", "question": "q", "answers": [{"text": "x", "answer_start": -1}])")) ==
        "f: data[0].paragraphs[0].qas[0].answers[0].answer_start: expected a place in the context, a whole number "
        "from 0, got -1");
  CHECK(refusal(with_question(R"("id": "1", "question": "q", "answers": [{"text": "x", "answer_start": 1.5}])")) ==
        "f: data[0].paragraphs[0].qas[0].answers[0].answer_start: expected a place in the context, a whole number from "
        "0, got 1.5");
  for (const auto& [start, kind] : {std::pair("\"5\"", "a text"), {"null", "null"}, {"true", "true or false"}})
    CHECK(
        refusal(with_question(std::string(R"("id": "1", "question": "q", "answers": [{"text": "x", "answer_start": )") +
                              start + "}]")) ==
        std::string("f: data[0].paragraphs[0].qas[0].answers[0].answer_start: expected a whole number, got ") + kind);
  CHECK(refusal(with_question(R"("id": true)")) ==
        "f: data[0].paragraphs[0].qas[0].id: expected a text, got true or false");
  for (const std::string start : {"1e300", "9223372036854775808", "100000000000000000000", "5.0"})
    CHECK(refusal(
              with_question(R"("id": "1", "question": "q", "answers": [{"text": "x", "answer_start": )" + start + "}]"))
              .ends_with(" a whole number from 0, got " + start));
  CHECK(
      refusal(
          R"({"data": [{"paragraphs": [{"context": "x", "qas": []}, {"qas": [], "context": "x", "id": 1}, {"qas": []}]}]})") ==
      "f: data[0].paragraphs[2]: expected the key \"context\", got none");
  CHECK(refusal(R"({"data": [{"paragraphs": [], "title": "x"}, {"title": "y"}], "version": "1"})") ==
        "f: data[1]: expected the key \"paragraphs\", got none");
  CHECK(
      refusal(
          R"({"data": [{"id": "1", "context": "x", "question": "q", "answers": {"text": [], "answer_start": []}}]})") ==
      "f: data[0]: expected the key \"paragraphs\", got none; hint: write the objects of \"data\" a line each, "
      "into a file that ends in .jsonl");
  CHECK(refusal(R"({"version": "1"})") ==
        "f: file: expected the key \"data\", got none; hint: the name of a file with a question a line ends in .jsonl");
  CHECK(refusal(with_question(kQuestion + "}, {" + kQuestion)) ==
        "f: data[0].paragraphs[0].qas[1].id: expected an id of its own, got \"1\" again");
}

TEST_CASE("a file that is cut or nested 100000 deep is refused") {
  const std::string whole = with_question(kQuestion);
  for (std::size_t size = 1; size < whole.size(); ++size)
    CHECK(refusal(whole.substr(0, size)).starts_with("f: expected JSON, got a syntax error at byte "));
  CHECK(refusal(R"({"data": [], "x": )" + std::string(100'000, '[')) ==
        "f: x[0][0][0][0][0][0][0][0][0]: expected at most 64 levels of values in each other, got more");
}

TEST_CASE("a list or an object in the place of a text or number or truth value is refused") {
  const auto with = [](const std::string& context, const std::string& question, const std::string& answer) {
    return refusal(R"({"data": [{"paragraphs": [{"context": )" + context + R"(, "qas": [{)" + question +
                   R"(, "answers": [{)" + answer + "}]}]}]}]}");
  };
  const std::string question = R"("id": "1", "question": "q")", answer = R"("text": "x", "answer_start": 0)";
  CHECK(with(R"("x")", question, answer) == "");
  for (const std::string value : {"[]", R"(["x"])", "[5]", "[[]]", "{}", R"({"x": 5})"}) {
    CAPTURE(value);
    CHECK(with(value, question, answer).starts_with("f: data[0].paragraphs[0].context: expected "));
    for (const std::string key : {"id", "question", "is_impossible"}) {
      CAPTURE(key);
      std::string keys = key == "id" ? R"("question": "q")" : key == "question" ? R"("id": "1")" : question;
      keys += ", \"" + key + "\": " + value;
      CHECK(with(R"("x")", keys, answer).starts_with("f: data[0].paragraphs[0].qas[0]." + key + ": expected "));
    }
    CHECK(with(R"("x")", question, R"("answer_start": 0, "text": )" + value)
              .starts_with("f: data[0].paragraphs[0].qas[0].answers[0].text: expected "));
    CHECK(with(R"("x")", question, R"("text": "x", "answer_start": )" + value)
              .starts_with("f: data[0].paragraphs[0].qas[0].answers[0].answer_start: expected "));
  }
}

TEST_CASE("a truth value of a key that SQuAD does not have says nothing of the question") {
  const auto data = parse_squad(with_question(kQuestion + R"(, "reviewed": true)"), "f");
  CHECK_FALSE(data.at(0).questions.at(0).is_impossible.has_value());
}

TEST_CASE("a file of questions that is no text, or compressed, is named so") {
  const support::TemporaryDirectory directory;
  const auto said = [&](const std::string& name, const std::string& bytes) {
    support::write_text(directory / name, bytes);
    return support::refusal(Failure::input, [&] { read_squad(directory / name); });
  };
  const std::string wide("\xFF\xFE{\0\"\0", 6);
  CHECK(said("wide.json", wide) ==
        (directory / "wide.json").string() + ":1: expected text in UTF-8, got a NUL byte; hint: it looks like UTF-16");
  CHECK(said("dev.json.gz", "\x1F\x8B") ==
        (directory / "dev.json.gz").string() +
            ": expected SQuAD's JSON as it is, got it compressed; hint: unpack it first");
}
