#include "bert/tasks/sentence_list.h"

#include <doctest/doctest.h>

#include "support/program.h"
#include "support/sentences.h"

using namespace bertrand;
using namespace bertrand::tasks;

TEST_CASE("sentences come back with their words, labels and lines, from memory and from the disk") {
  const support::TemporaryDirectory directory;
  for (const std::size_t held : {std::size_t{1}, std::size_t{1} << 20})
    for (const bool labelled : {false, true}) {
      const io::SpillPlace place{.directory = std::filesystem::path(directory / "."), .held_bytes = held};
      const std::vector<std::string> labels = {"O", "B-X", "O"};
      const SentenceList list =
          support::sentence_list({{"a", "New York"}, {"שלום"}}, labelled ? labels : std::vector<std::string>{}, place);
      CHECK((list.held_bytes() == 0) == (held == 1));
      CHECK(list.sentences() == 2);
      CHECK(list.words() == 3);
      CHECK(list.labelled() == labelled);
      CHECK(list.where() == "f:1");
      std::vector<TokenFile> found;
      list.for_each([&](std::size_t number, const TokenFile& sentence) {
        CHECK(number == found.size());
        found.push_back(sentence);
      });
      REQUIRE(found.size() == 2);
      CHECK(found[0].words == std::vector<std::string>{"a", "New York"});
      CHECK(found[0].labels == (labelled ? std::vector<std::string>{"O", "B-X"} : std::vector<std::string>{}));
      CHECK(found[0].lines == std::vector<std::int64_t>{1, 2});
      CHECK(found[0].sentences() == 1);
      CHECK(found[1].words == std::vector<std::string>{"שלום"});
      CHECK(found[1].where(0) == "f:3");
    }
}
