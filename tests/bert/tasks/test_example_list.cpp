#include "bert/tasks/example_list.h"

#include <doctest/doctest.h>

#include "support/program.h"

using namespace bertrand;
using namespace bertrand::tasks;

TEST_CASE("examples come back as they were added, from memory and from the disk, with what they do not have") {
  const support::TemporaryDirectory directory;
  const std::vector<Example> given = {{.id = "", .text_a = "", .line = 1},
                                      {.id = "x", .text_a = "a\tb\n", .text_b = "", .line = 2},
                                      {.id = "7", .text_a = "a", .label = "", .line = std::int64_t{1} << 40},
                                      {.id = "8", .text_a = std::string(300, 'z'), .text_b = "b", .label = "c"}};
  for (const std::size_t held : {1, 100, 1000}) {
    ExampleList list({.directory = std::filesystem::path(directory / "."), .held_bytes = held});
    for (const Example& example : given) list.push_back(example);
    list.finish();
    REQUIRE(list.size() == given.size());
    CHECK((list.held_bytes() == 0) == (held < 300));
    std::size_t seen = 0;
    list.for_each([&](std::size_t number, const Example& example) {
      CHECK(number == seen);
      const Example& expected = given[seen++];
      CHECK(example.id == expected.id);
      CHECK(example.text_a == expected.text_a);
      CHECK(example.text_b == expected.text_b);
      CHECK(example.label == expected.label);
      CHECK(example.line == expected.line);
    });
    CHECK(seen == given.size());
  }
}
