#include <doctest/doctest.h>

#include "support/program.h"
#include "training/report/results.h"

TEST_CASE("results are sorted lines and one JSON object") {
  const support::TemporaryDirectory directory;
  bertrand::training::write_results(bertrand::io::Files::system(), directory / "",
                                    {.metrics = {{"eval_loss", 0.1}, {"eval_accuracy", 0.5}}});
  CHECK(support::read_text(directory / "eval_results.txt") == "eval_accuracy = 0.5\neval_loss = 0.1\n");
  CHECK(support::read_text(directory / "eval_results.json") ==
        "{\n  \"eval_accuracy\": 0.5,\n  \"eval_loss\": 0.1\n}\n");
}

TEST_CASE("the step of a model is a whole number among its results") {
  const support::TemporaryDirectory directory;
  bertrand::training::write_results(bertrand::io::Files::system(), directory / "",
                                    {.metrics = {{"eval_accuracy", 1}}, .global_step = 846});
  CHECK(support::read_text(directory / "eval_results.txt") == "eval_accuracy = 1\nglobal_step = 846\n");
  CHECK(support::read_text(directory / "eval_results.json") ==
        "{\n  \"eval_accuracy\": 1.0,\n  \"global_step\": 846\n}\n");
}
