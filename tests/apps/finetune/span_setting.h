// Runs of finetune --task squad and squad2 on questions that a very small model learns.
#pragma once
#include <string>
#include <vector>

#include "support/small_model.h"
#include "support/small_squad.h"

namespace support {

struct SpanSetting {
  TemporaryDirectory directory;
  bool version_2;

  explicit SpanSetting(bool version_2_ = true) : version_2(version_2_) {
    write_small_model(directory / "model");
    write_text(at("train.json"), small_squad(36, version_2).dump());
    write_text(at("dev.json"), small_squad(12, version_2).dump());
  }
  std::string at(const std::string& name) const { return directory / name; }
  std::string file(const std::string& name) const { return read_text(directory / name); }
  nlohmann::json json(const std::string& name) const { return nlohmann::json::parse(file(name)); }

  /// Windows of 16 tokens, of which the question takes at most 4; trains on train.json unless the flags name no such
  /// file.
  Outcome run(const std::string& output, const std::vector<std::string>& flags) const {
    const std::vector<std::string> defaults = {"--train", at("train.json"),  "--batch-size",
                                               "8",       "--learning-rate", "0.01"};
    return run_without_training(output, with_defaults(defaults, flags));
  }
  Outcome run_without_training(const std::string& output, const std::vector<std::string>& flags) const {
    const std::vector<std::string> defaults = {"--task",
                                               version_2 ? "squad2" : "squad",
                                               "--model",
                                               at("model"),
                                               "--output",
                                               at(output),
                                               "--max-seq-length",
                                               "16",
                                               "--max-query-length",
                                               "4",
                                               "--doc-stride",
                                               "4",
                                               "--threads",
                                               "1"};
    return run_program("finetune", with_defaults(defaults, flags));
  }
};

}  // namespace support
