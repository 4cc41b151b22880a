// finetune on a very small model whose texts name an animal.
#pragma once
#include <string>
#include <vector>

#include "support/small_model.h"

namespace support {

/// A directory with model, train.csv and dev.csv.
struct SmallFinetuning {
  TemporaryDirectory directory;
  explicit SmallFinetuning(int rows) {
    write_small_model(directory / "model");
    write_text(directory / "train.csv", animals(rows));
    write_text(directory / "dev.csv", animals(12));
  }
  std::string at(const std::string& name) const { return directory / name; }
  /// A figure of eval_results.json of a run.
  double figure(const std::string& run, const std::string& name) const {
    return nlohmann::json::parse(read_text(at(run + "/eval_results.json"))).at(name);
  }
  /// `flags` come last, --train or --predict among them.
  Outcome finetune(const std::string& output, const std::vector<std::string>& flags) const {
    return run_program(
        "finetune", with_defaults({"--task", "custom", "--label-column", "kind", "--max-seq-length", "16", "--threads",
                                   "1", "--output", directory / output, "--model", directory / "model"},
                                  flags));
  }
  /// Trains on train.csv into run, and evaluates on dev.csv: for one epoch, unless the flags say otherwise.
  Outcome train(const std::vector<std::string>& flags) const {
    return finetune("run",
                    with_defaults({"--train", at("train.csv"), "--eval", at("dev.csv"), "--epochs", "1"}, flags));
  }
};

}  // namespace support
