// A config.json that wants more memory than there is, beside weights of a small model.
#include <doctest/doctest.h>

#include "support/small_heads.h"

using support::write_text;

TEST_CASE("a configuration larger than any memory is refused by the weights beside it, by every program that loads") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  auto config = nlohmann::json::parse(support::read_text(directory / "model/config.json"));
  config["hidden_size"] = 1 << 16;
  config["num_attention_heads"] = 1024;
  config["intermediate_size"] = 1 << 18;
  config["num_hidden_layers"] = 1024;
  write_text(directory / "model/config.json", config.dump());
  write_text(directory / "lines.txt", "red fish\n");
  write_text(directory / "rows.csv", "text,kind\nred fish,fish\n");
  const std::string lines = directory / "lines.txt";
  using Flags = std::vector<std::string>;
  for (auto& [program, flags] :
       std::map<std::string, Flags>{{"predict", {"--input", lines}},
                                    {"extract", {"--input", lines, "--output", directory / "features.jsonl"}},
                                    {"export", {"--format", "huggingface", "--output", directory / "copy"}},
                                    {"report", {"--explain", lines, "--output", directory / "page.html"}},
                                    {"finetune",
                                     {"--task", "custom", "--label-column", "kind", "--predict", directory / "rows.csv",
                                      "--output", directory / "run"}}}) {
    CAPTURE(program);
    Flags all = flags;
    all.insert(all.end(), {"--model", directory / "model"});
    const support::Outcome outcome = support::run_program(program, all);
    CHECK(outcome.code == 4);
    CHECK(outcome.error.find(" of another shape than the model's: ") != std::string::npos);
  }
}
