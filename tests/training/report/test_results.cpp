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

TEST_CASE("the words of results stand in their JSON by key, those of figures together") {
  const support::TemporaryDirectory directory;
  bertrand::training::write_results(
      bertrand::io::Files::system(), directory / "",
      {.metrics = {{"eval_f1", 1}, {"eval_b", 2}},
       .words = {{"eval_f1", "one"}, {"best_model_by", "eval_f1"}, {"eval_b", "two"}, {"eval_none", "three"}}});
  CHECK(support::read_text(directory / "eval_results.json") ==
        "{\n  \"best_model_by\": \"eval_f1\",\n  \"eval_b\": 2.0,\n  \"eval_f1\": 1.0,\n  \"meaning\": {\n"
        "    \"eval_b\": \"two\",\n    \"eval_f1\": \"one\"\n  }\n}\n");
}

TEST_CASE("the step of a model is a whole number among its results") {
  const support::TemporaryDirectory directory;
  bertrand::training::write_results(bertrand::io::Files::system(), directory / "",
                                    {.metrics = {{"eval_accuracy", 1}}, .global_step = 846});
  CHECK(support::read_text(directory / "eval_results.txt") == "eval_accuracy = 1\nglobal_step = 846\n");
  CHECK(support::read_text(directory / "eval_results.json") ==
        "{\n  \"eval_accuracy\": 1.0,\n  \"global_step\": 846\n}\n");
}
