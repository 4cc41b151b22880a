// --vocab-file and --model of prepare.
#include <doctest/doctest.h>

#include "support/small_model.h"

TEST_CASE("every command that reads tokens wants a vocabulary or a model") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "text.txt", "red .\nfish .\n");
  support::write_small_model(directory / "model");
  const std::vector<std::vector<std::string>> commands = {
      {"tokens", directory / "text.txt"},
      {"corpus", "--input", directory / "text.txt", "--output", directory / "out"},
      {"records", "--input", directory / "text.txt", "--output", directory / "out"},
      {"squad", "--input", directory / "text.txt", "--output", directory / "out"}};
  for (const std::vector<std::string>& command : commands) {
    const auto outcome = support::run_program("prepare", command);
    CHECK(outcome.code == 2);
    CHECK(outcome.error == "error: --vocab-file, --model: expected one of them, got none\n");
  }
  std::vector<std::string> tokens = commands[0];
  tokens.insert(tokens.end(), {"--model", directory / "model"});
  CHECK(support::run_program("prepare", tokens).out == "5 14\n8 14\n");
  tokens.emplace_back("--cased");
  CHECK(support::run_program("prepare", tokens).error ==
        "error: --cased: expected with --vocab-file, got a model directory that says it itself\n");
}
