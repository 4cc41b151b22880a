// Questions as lines of JSON.
#include "bert/tasks/squad_lines.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "io/json.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;
using io::Json;

namespace {

class Lines {
 public:
  std::filesystem::path write(const std::string& text, const std::string& name = "q.jsonl") const {
    support::write_text(directory_ / name, text);
    return directory_ / name;
  }
  std::vector<SquadParagraph> read(const std::string& text, const std::string& name = "q.jsonl") const {
    return read_squad(write(text, name));
  }
  /// What is said against this text, behind the name of the file.
  std::string refusal(const std::string& text) const {
    const std::filesystem::path file = write(text);
    const std::string message = support::refusal(Failure::input, [&] { read_squad(file); });
    REQUIRE(message.starts_with(file.string()));
    return message.substr(file.string().size());
  }

 private:
  support::TemporaryDirectory directory_;
};

bool are_same(const std::vector<SquadParagraph>& a, const std::vector<SquadParagraph>& b) {
  const auto same_answers = [](const SquadAnswer& x, const SquadAnswer& y) {
    return x.text == y.text && x.start == y.start;
  };
  const auto same_questions = [&](const SquadQuestion& x, const SquadQuestion& y) {
    return x.id == y.id && x.question == y.question && x.is_impossible == y.is_impossible &&
           std::ranges::equal(x.answers, y.answers, same_answers);
  };
  return std::ranges::equal(a, b, [&](const SquadParagraph& x, const SquadParagraph& y) {
    return x.context == y.context && std::ranges::equal(x.questions, y.questions, same_questions);
  });
}

}  // namespace

TEST_CASE("lines with the same context that follow each other are the questions of one paragraph") {
  const Lines lines;
  const std::string text =
      R"({"id": "1", "title": "t", "context": "a bé", "question": "q?", "answers": {"text": ["bé", "a"], "answer_start": [2, 0]}})"
      "\n\n"
      R"({"answers": {"answer_start": [], "text": []}, "context": "a bé", "question": "r?", "id": "2"})"
      "\r\n"
      R"({"id": "3", "context": "c", "question": "s?", "answers": [{"text": "c", "answer_start": 0}], "is_impossible": false})"
      "\n"
      R"({"id": "4", "context": "a bé", "question": "t?", "answers": null, "is_impossible": true})"
      "\n"
      R"({"id": "5", "context": "", "question": "u?"})";
  for (const char* name : {"q.jsonl", "q.ndjson", "q.json", "q"}) {
    CAPTURE(name);
    const std::vector<SquadParagraph> read = lines.read(text, name);
    REQUIRE(read.size() == 4);
    CHECK_FALSE(read[3].questions[0].is_impossible.has_value());
    CHECK(read[0].context == "a bé");
    REQUIRE(read[0].questions.size() == 2);
    const SquadQuestion& first = read[0].questions[0];
    CHECK(first.id == "1");
    CHECK(first.question == "q?");
    REQUIRE(first.answers.size() == 2);
    CHECK(first.answers[0].text == "bé");
    CHECK(first.answers[0].start == 2);
    CHECK(first.answers[1].text == "a");
    CHECK(first.answers[1].start == 0);
    CHECK(first.is_impossible == false);
    CHECK(read[0].questions[1].answers.empty());
    CHECK(read[0].questions[1].is_impossible == true);
    REQUIRE(read[1].questions.size() == 1);
    CHECK(read[1].questions[0].answers.size() == 1);
    CHECK(read[1].questions[0].is_impossible == false);
    CHECK(read[2].questions[0].is_impossible == true);
  }
}

TEST_CASE("SQuAD's JSON of which a line is an object by accident is no file of lines") {
  const std::string article = R"({"paragraphs": [{"context": "a", "qas": [{"id": "ID", "question": "q"}]}]})";
  const auto with_id = [&](const char* id) { return std::string(article).replace(article.find("ID"), 2, id); };
  const std::vector<SquadParagraph> read =
      Lines().read("{\"data\": [" + with_id("1") + "\n," + with_id("2") + "]}\n", "q.json");
  REQUIRE(read.size() == 2);
  CHECK(read[1].questions[0].id == "2");
}

TEST_CASE("a file of lines has the questions of the same file in SQuAD's JSON") {
  const std::filesystem::path file = paths::shared + "/data/squad/small/dev-v2.json";
  if (!std::filesystem::exists(file)) {
    MESSAGE("SKIPPED: no data in " << file);
    return;
  }
  std::string text;
  const Json json = io::parse_json(support::read_text(file), {"f"});
  for (const Json& article : json.at("data"))
    for (const Json& paragraph : article.at("paragraphs"))
      for (const Json& question : paragraph.at("qas")) {
        Json line{{"id", question.at("id")},
                  {"title", article.at("title")},
                  {"context", paragraph.at("context")},
                  {"question", question.at("question")},
                  {"answers", {{"text", Json::array()}, {"answer_start", Json::array()}}}};
        for (const Json& answer : question.at("answers"))
          for (const char* key : {"text", "answer_start"}) line["answers"][key].push_back(answer.at(key));
        text += io::json_text(line) + "\n";
      }
  const Lines lines;
  CHECK(are_same(lines.read(text), read_squad(file)));
  CHECK(are_same(lines.read(text, "q.json"), read_squad(file)));
}

TEST_CASE("what is no line of a question is refused with its line and key") {
  const Lines lines;
  const auto refusal = [&](const std::string& answers) {
    return lines.refusal("\n{\"id\": \"1\", \"context\": \"c\", \"question\": \"q\", \"answers\": " + answers + "}");
  };
  CHECK(lines.refusal("{\"id\": \"1\"}").starts_with(":1: context: expected "));
  CHECK(lines.refusal(R"({"context": "c", "question": "q"})").starts_with(":1: id: expected "));
  CHECK(lines.refusal(R"({"context": "c", "id": 5, "question": "q"})").starts_with(":1: id: expected a string, got 5"));
  CHECK(lines.refusal("[1]").starts_with(":1: "));
  CHECK(refusal(R"({"text": ["a", "b"], "answer_start": [1]})") ==
        ":2: answers.answer_start: expected a place for each of 2 texts, got [1]");
  CHECK(refusal(R"({"text": ["a", 3], "answer_start": [1, 2]})") == ":2: answers.text[1]: expected a text, got 3");
  CHECK(refusal(R"({"text": ["a"], "answer_start": [-1]})") ==
        ":2: answers.answer_start[0]: expected a place in the context, a whole number from 0, got -1");
  CHECK(refusal(R"({"text": ["a"], "answer_start": [1.5]})").ends_with("got 1.5"));
  CHECK(refusal(R"({"text": ["a"]})").starts_with(":2: answers.answer_start: expected "));
  CHECK(refusal(R"([{"text": "a"}])").starts_with(":2: answers.answer_start[0]: expected a place in the context"));
  CHECK(refusal("[5]") == ":2: answers[0]: expected an object, got 5");
  CHECK(refusal("5").starts_with(":2: answers: expected "));
  const std::string line = R"({"id": "1", "context": "c", "question": "q"})";
  CHECK(lines.refusal(line + "\n" + line) == ":2: id: expected an id of its own, got \"1\" again");
}
