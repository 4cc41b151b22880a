#include "bert/tasks/paragraph_list.h"

#include <doctest/doctest.h>

#include "support/program.h"

using namespace bertrand;
using namespace bertrand::tasks;

TEST_CASE("paragraphs come back with their questions, answers and places, from memory and from the disk") {
  const support::TemporaryDirectory directory;
  const SquadParagraph asked{
      .context = "a b\nשלום",
      .questions = {{.id = "1", .question = "?", .answers = {{"a", 0}, {"", 1234567890123}}, .is_impossible = false},
                    {.id = "2", .question = "", .answers = {}, .is_impossible = true},
                    {.id = "", .question = "who", .answers = {{"b", 2}}, .is_impossible = {}}}};
  const std::vector<SquadParagraph> all = {asked, {.context = "", .questions = {}}, asked};
  for (const std::size_t held : {std::size_t{1}, std::size_t{1} << 20}) {
    ParagraphList list({.directory = std::filesystem::path(directory / "."), .held_bytes = held});
    for (const SquadParagraph& paragraph : all) list.add(paragraph);
    list.finish();
    CHECK((list.held_bytes() == 0) == (held == 1));
    std::vector<SquadParagraph> found;
    list.for_each([&](SquadParagraph&& paragraph) { found.push_back(std::move(paragraph)); });
    REQUIRE(found.size() == 3);
    CHECK(found[1].questions.empty());
    for (const std::size_t i : {0, 1, 2}) {
      CHECK(found[i].context == all[i].context);
      REQUIRE(found[i].questions.size() == all[i].questions.size());
      for (std::size_t q = 0; q < found[i].questions.size(); ++q) {
        const SquadQuestion &question = found[i].questions[q], &expected = all[i].questions[q];
        CHECK(question.id == expected.id);
        CHECK(question.question == expected.question);
        CHECK(question.is_impossible == expected.is_impossible);
        REQUIRE(question.answers.size() == expected.answers.size());
        for (std::size_t a = 0; a < question.answers.size(); ++a) {
          CHECK(question.answers[a].text == expected.answers[a].text);
          CHECK(question.answers[a].start == expected.answers[a].start);
        }
      }
    }
  }
}
