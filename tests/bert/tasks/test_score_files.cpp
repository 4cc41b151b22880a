#include "bert/tasks/score_files.h"

#include <doctest/doctest.h>

#include "support/program.h"

using namespace bertrand;
using namespace bertrand::tasks;

TEST_CASE("an entity of the predictions of finetune ends with its sentence") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "predictions.tsv",
                      "sentence\tword\tprediction\tprobability\tlabel\n"
                      "0\ta\tB-X\t.9\tB-X\n1\tb\tI-X\t.8\tI-X\n");
  const FileScores scores = score_tokens_file(directory / "predictions.tsv");
  CHECK(scores.figures.at("support") == 2);
  CHECK(scores.figures.at("illegal_tags") == 1);
}
