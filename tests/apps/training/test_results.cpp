#include <doctest/doctest.h>

#include "apps/training/results.h"
#include "support/program.h"

TEST_CASE("results are sorted lines and one JSON object") {
  const support::TemporaryDirectory directory;
  bertrand::training::write_results(bertrand::formats::Files::system(), directory / "",
                                    {{"eval_loss", 0.1}, {"eval_accuracy", 0.5}});
  CHECK(support::read_text(directory / "eval_results.txt") == "eval_accuracy = 0.5\neval_loss = 0.1\n");
  CHECK(support::read_text(directory / "eval_results.json") ==
        "{\n  \"eval_accuracy\": 0.5,\n  \"eval_loss\": 0.1\n}\n");
}
