#include <doctest/doctest.h>

#include "support/program.h"
#include "training/report/results.h"

TEST_CASE("results are sorted lines and one JSON object") {
  const support::TemporaryDirectory directory;
  bertrand::training::write_results(bertrand::io::Files::system(), directory / "",
                                    {{"eval_loss", 0.1}, {"eval_accuracy", 0.5}});
  CHECK(support::read_text(directory / "eval_results.txt") == "eval_accuracy = 0.5\neval_loss = 0.1\n");
  CHECK(support::read_text(directory / "eval_results.json") ==
        "{\n  \"eval_accuracy\": 0.5,\n  \"eval_loss\": 0.1\n}\n");
}
