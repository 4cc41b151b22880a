// Texts of very many words: how many there may be, the time for their answers, and how such a text is left.
#include <doctest/doctest.h>

#include "bert/inference/open.h"
#include "bert/network/golden.h"
#include "support/growth.h"
#include "support/refusal.h"
#include "support/small_heads.h"

using namespace bertrand;
using support::refusal;

namespace {

std::unique_ptr<inference::Predictor> open(const std::filesystem::path& directory) {
  return inference::open({.directory = directory, .backend = golden::cpu()}, inference::Head::tokens,
                         {.max_seq_length = 8, .overlap = 2});
}

}  // namespace

TEST_CASE("a text may have a million words, and the time for their labels grows as they do") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "model", {"O", "B-A"});
  const auto predictor = open(directory / "model");
  const auto refused = [&](const io::Json& request) {
    return refusal(Failure::input, [&] { predictor->encode(request, "t:3"); });
  };
  const std::string_view most = ": expected at most 1048576 words, got more; hint: a paragraph or a page a line";
  CHECK(refused({{"text", std::string((1 << 20) + 1, '!')}}) == fmt::format("t:3: text{}", most));
  CHECK(refused({{"words", std::vector<std::string>((1 << 20) + 1, "red")}}) == fmt::format("t:3: words{}", most));
  const double growth = support::growth_by_four(10'000, [&](int words) {
    const inference::Query query = predictor->encode({{"text", std::string(static_cast<std::size_t>(words), '!')}}, "");
    std::vector<inference::Outputs> outputs;
    for (const bert::Sequence& window : query.sequences)
      outputs.push_back({.width = 2, .values = std::vector<float>(2 * window.token_ids.size())});
    CHECK(inference::answer(query, outputs).at("words").size() == static_cast<std::size_t>(words));
  });
  CHECK(growth < 8);
}

TEST_CASE("many windows of one text can be left between two batches") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "model", {"O", "B-A"});
  const auto predictor = open(directory / "model");
  std::vector<inference::Query> queries = {predictor->encode({{"text", std::string(100, '!')}}, "here")};
  REQUIRE(queries[0].sequences.size() > 10);
  int batches = 0, answers = 0;
  const auto run = [&](int most) {
    inference::run_all(
        *predictor, queries, 8, [&](std::size_t, std::span<const inference::Outputs>) { ++answers; },
        [&] {
          if (++batches == most) fail(Failure::interrupted, "enough");
        });
  };
  CHECK(refusal(Failure::interrupted, [&] { run(3); }) == "enough");
  CHECK(batches == 3);
  CHECK(answers == 0);
}
