// The memory of a whole run, as the kernel counts it, against the figure that its plan prints.
#include <sys/resource.h>

#include "io/tfrecord.h"
#include "pretrain_setting.h"
#include "support/gzip.h"
#include "support/tf_example.h"

using namespace bertrand;
using support::PretrainSetting;

namespace {

/// The most bytes that `pretrain` had resident. What it prints goes to `out`.
double peak_of(const support::Flags& flags, const std::string& out) {
  std::string command = "ulimit -c 0; exec '" + bertrand::paths::binary + "/pretrain'";
  for (const std::string& flag : flags) command += " '" + flag + "'";
  command += " >'" + out + "'";
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  REQUIRE(wait4(child, &status, 0, &usage) == child);
  REQUIRE(status == 0);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// What the plan says the process takes.
double predicted_in(const std::string& out) {
  const std::string line = "process     at most ";
  REQUIRE(out.find(line) != std::string::npos);
  const std::string figure = out.substr(out.find(line) + line.size());
  REQUIRE(figure.substr(0, figure.find(" on")).ends_with(" MB"));
  return std::stod(figure) * 1e6;
}

/// A TFRecord of seven tokens, with so many bytes that no one reads.
std::string framed_record(std::size_t spare = 0) {
  std::string record;
  io::append_record(record, support::serialize_example({{"input_ids", std::vector<std::int64_t>{2, 5, 4, 3, 7, 9, 3}},
                                                        {"input_mask", std::vector<std::int64_t>(7, 1)},
                                                        {"segment_ids", std::vector<std::int64_t>{0, 0, 0, 0, 1, 1, 1}},
                                                        {"masked_lm_positions", std::vector<std::int64_t>{2}},
                                                        {"masked_lm_ids", std::vector<std::int64_t>{8}},
                                                        {"masked_lm_weights", std::vector<float>{1}},
                                                        {"next_sentence_labels", std::vector<std::int64_t>{1}},
                                                        {"spare", std::vector<std::string>{std::string(spare, ' ')}}}));
  return record;
}

}  // namespace

TEST_CASE("the plan bounds the memory of a process that trains and evaluates and saves and resumes") {
  const PretrainSetting setting;
  // 13 million parameters are 54 MB, beside which the program is little.
  support::Flags flags =
      setting.flags("run", {"--config", "small", "--batch-size", "4", "--threads", "2", "--steps", "3", "--save-every",
                            "1", "--eval-every", "2", "--eval-input", setting.directory / "held_out.txt"});
  for (const bool resumed : {false, true}) {
    CAPTURE(resumed);
    if (resumed) {
      std::filesystem::remove_all(setting.directory / "run/checkpoint-3");
      flags.push_back("--resume");
    }
    const double measured = peak_of(flags, setting.directory / "out");
    const double predicted = predicted_in(setting.file("out"));
    INFO(predicted << " and " << measured);
    CHECK(measured <= predicted);
    CHECK(measured >= 0.8 * predicted);
  }
}

TEST_CASE("the plan bounds the memory of a process whose steps have many examples") {
  const PretrainSetting setting;
  const std::string record = framed_record();
  std::string records;
  for (int i = 0; i < 65536; ++i) records += record;
  support::write_text(setting.directory / "many.tfrecord", records);
  support::Flags flags =
      setting.flags("run", {"--batch-size", "65536", "--micro-batch-size", "512", "--threads", "2", "--steps", "2"});
  for (std::string& flag : flags)
    if (flag.ends_with("text.txt")) flag = setting.directory / "many.tfrecord";
  const double measured = peak_of(flags, setting.directory / "out");
  const double predicted = predicted_in(setting.file("out"));
  INFO(predicted << " and " << measured);
  CHECK(measured <= predicted);
}

TEST_CASE("the plan of packed records that lie on the disk has the memory of their run, and leaves no file") {
  const PretrainSetting setting;
  const std::string record = framed_record(60'000);
  std::string records;
  for (int i = 0; i < 1200; ++i) records += record;  // 72 MB
  const std::string file = setting.directory / "many.tfrecord.gz";
  support::write_text(file, support::gzipped(records));
  support::Flags flags = setting.flags("run", {"--input", file, "--threads", "1", "--steps", "1", "--plan"});
  peak_of(flags, setting.directory / "planned");
  CHECK_FALSE(std::filesystem::exists(setting.directory / "run"));
  for (const auto& entry : std::filesystem::directory_iterator(setting.directory / ""))
    CHECK(entry.path().string().find(".tmp-") == std::string::npos);
  flags.pop_back();
  peak_of(flags, setting.directory / "out");
  const auto examples_in = [&](const std::string& out) {
    const std::string text = setting.file(out), before = " on the host, ";
    return text.substr(text.find(before) + before.size(), text.find(" of it examples") - text.find(before));
  };
  CHECK(examples_in("planned") == examples_in("out"));
  CHECK(std::abs(predicted_in(setting.file("planned")) - predicted_in(setting.file("out"))) < 8e6);
}

TEST_CASE("the memory of training from a corpus does not grow with it") {
  const PretrainSetting setting;
  support::write_text(setting.directory / "large.txt", PretrainSetting::text(200'000));
  double small = 0;
  for (const std::string name : {"text", "large"}) {
    const std::string corpus = setting.directory / (name + "_corpus");
    const auto outcome =
        support::run_program("prepare", {"corpus", "--vocab-file", setting.directory / "vocab.txt", "--input",
                                         setting.directory / (name + ".txt"), "--output", corpus});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    const double peak =
        peak_of(setting.flags(name + "_run", {"--config", "mini", "--steps", "5", "--threads", "2", "--input", corpus}),
                setting.directory / "out");
    if (small == 0) small = peak;
    CHECK(peak < 1.05 * small);
  }
}
