#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "apps/pretrain/pretrain_setting.h"

using support::Outcome;
using support::PretrainSetting;
namespace fs = std::filesystem;

TEST_CASE("a run resumed at any step ends with the same bits as one that was never stopped, whatever the threads") {
  const PretrainSetting setting;
  const std::vector<std::string> flags = {"--epochs",           "2", "--eval-input", setting.directory / "held_out.txt",
                                          "--save-every",       "1", "--keep",       "99",
                                          "--micro-batch-size", "3", "--eval-every", "4",
                                          "--log-every",        "3"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return more;
  };
  const Outcome whole = setting.run("whole", with({"--threads", "1"}));
  REQUIRE_MESSAGE(whole.code == 0, whole.error);
  const int steps = setting.metrics("whole").back().at("step");
  REQUIRE(steps >= 6);
  // People see the figures of metrics.jsonl, and how long it will still take.
  for (const auto& line : setting.metrics("whole")) {
    const bool of_steps = line.contains("loss");
    const std::string figures = of_steps ? fmt::format("  loss {:.4f}  lr ", line.at("loss").get<double>())
                                         : fmt::format("step {}:  eval_loss {:.4f}  ", line.at("step").get<int>(),
                                                       line.at("eval_loss").get<double>());
    CHECK_MESSAGE(whole.out.find(figures) != std::string::npos, figures);
  }
  CHECK(whole.out.find(" left  ") != std::string::npos);
  for (int step = 1; step < steps; ++step) {
    CAPTURE(step);
    const fs::path run = setting.directory / "run";
    fs::remove_all(run);
    fs::copy(setting.directory / "whole", run, fs::copy_options::recursive);
    for (const char* gone : {"model.safetensors", "eval_results.json", "eval_results.txt"}) fs::remove(run / gone);
    for (int later = step + 1; later <= steps; ++later) fs::remove_all(run / ("checkpoint-" + std::to_string(later)));
    const Outcome resumed = setting.run("run", with({"--resume", "--threads", std::to_string(1 + step % 3)}));
    REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
    CHECK(resumed.out.find("resumed from") != std::string::npos);
    setting.check_same("run", "whole", steps);
    CHECK(setting.file("run/samples.jsonl") == setting.file("whole/samples.jsonl"));
  }
}

TEST_CASE("a run writes what it guesses of held-out examples, and histograms, and its bits stay the same") {
  const PretrainSetting setting;
  const std::vector<std::string> flags = {"--steps", "6", "--eval-every", "3", "--micro-batch-size", "5"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), flags.begin(), flags.end());
    return more;
  };
  const Outcome plain = setting.run("plain", flags);
  REQUIRE_MESSAGE(plain.code == 0, plain.error);
  CHECK(!fs::exists(setting.directory / "plain/samples.jsonl"));
  const Outcome watched =
      setting.run("watched", with({"--histograms", "2", "--eval-input", setting.directory / "held_out.txt"}));
  REQUIRE_MESSAGE(watched.code == 0, watched.error);
  CHECK(setting.file("watched/model.safetensors") == setting.file("plain/model.safetensors"));
  const auto lines = support::read_json_lines(setting.directory / "watched/samples.jsonl");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].at("step") == 3);
  CHECK(lines[1].at("step") == 6);
  REQUIRE(lines[0].at("examples").size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    const auto &before = lines[0].at("examples").at(i), &now = lines[1].at("examples").at(i);
    CHECK(before.at("tokens") == now.at("tokens"));
    REQUIRE(!now.at("masked").empty());
    for (const auto& mask : now.at("masked")) {
      CHECK(mask.at("position").get<std::size_t>() < now.at("tokens").size());
      REQUIRE(mask.at("guesses").size() == 3);
      CHECK(mask.at("guesses").at(0).at(1) >= mask.at("guesses").at(1).at(1));
      CHECK(mask.at("guesses").at(0).at(1) >= mask.at("probability"));
    }
  }
  std::string events;
  for (const auto& file : fs::directory_iterator(setting.directory / "watched"))
    if (file.path().filename().string().starts_with("events.")) events = support::read_text(file.path());
  CHECK(events.find("weights/bert.embeddings.word_embeddings.weight") != std::string::npos);
  CHECK(events.find("gradients/cls.predictions.bias") != std::string::npos);
  CHECK(events.find("| example | place | is | taken for |") != std::string::npos);
}

TEST_CASE("a run killed at random moments and resumed ends with the same bits") {
  const PretrainSetting setting;
  const std::vector<std::string> flags = {"--steps",      "150", "--eval-input", setting.directory / "held_out.txt",
                                          "--save-every", "4",   "--eval-every", "30"};
  REQUIRE(setting.run("whole", flags).code == 0);
  std::vector<std::string> all = setting.flags("run", flags);
  all.push_back("--resume");  // from the beginning if there is no checkpoint yet
  int kills = 0, code = 137;
  for (unsigned draw = 12345; code == 137 && kills < 200; draw = draw * 1103515245u + 12345u) {
    const auto threads = std::to_string(1 + kills % 3);
    std::vector<std::string> arguments = all;
    arguments.insert(arguments.end(), {"--threads", threads});
    const std::chrono::milliseconds delay(30 + 10 * kills + draw / 65536 % 60);
    code = setting.run_and_signal(arguments, SIGKILL, [&] {
      std::this_thread::sleep_for(delay);
      return true;
    });
    kills += code == 137;
  }
  CHECK(kills >= 2);
  REQUIRE(code == 0);
  setting.check_same("run", "whole", 150);
}

TEST_CASE("SIGTERM finishes the step, saves and exits 75, and resuming gives the same bits") {
  const PretrainSetting setting;
  const std::vector<std::string> flags = {"--steps", "400", "--eval-input", setting.directory / "held_out.txt"};
  REQUIRE(setting.run("whole", flags).code == 0);
  const auto has_logged = [&] { return setting.has_logged("run"); };
  REQUIRE(setting.run_and_signal(setting.flags("run", flags), SIGTERM, has_logged) == 75);
  int checkpoints = 0;
  for (const auto& entry : fs::directory_iterator(setting.directory / "run"))
    checkpoints += entry.path().filename().string().starts_with("checkpoint-");
  CHECK(checkpoints == 1);
  std::vector<std::string> resume = flags;
  resume.push_back("--resume");
  REQUIRE(setting.run("run", resume).code == 0);
  setting.check_same("run", "whole", 400);
}

TEST_CASE("a run that is resumed without a checkpoint says that it begins") {
  const PretrainSetting setting;
  const Outcome outcome = setting.run("run", {"--steps", "2", "--resume"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("no checkpoint in " + (setting.directory / "run").string() + ": beginning with step 1") !=
        std::string::npos);
}

TEST_CASE("a profile that can no longer be written costs a finished run nothing") {
  const PretrainSetting setting;
  const fs::path traces = setting.directory / "traces";
  fs::create_directory(traces);
  const auto lose_traces = [&] { return setting.has_logged("run") && fs::remove_all(traces) > 0; };
  constexpr int kNoSignal = 0;
  CHECK(setting.run_and_signal(setting.flags("run", {"--steps", "300", "--profile", traces / "trace.json"}), kNoSignal,
                               lose_traces) == 0);
  CHECK(fs::exists(setting.directory / "run/model.safetensors"));
}

TEST_CASE("--resume --plan shows the plan of a run that has checkpoints") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "2"}).code == 0);
  const Outcome plan = setting.run("run", {"--steps", "2", "--resume", "--plan"});
  CHECK_MESSAGE(plan.code == 0, plan.error);
  CHECK(plan.out.find("plan\n") != std::string::npos);
}

TEST_CASE("SIGTERM while a long text is read ends the program at once, with nothing written") {
  const PretrainSetting setting;
  std::string text = PretrainSetting::text(2000);
  while (text.size() < 60'000'000) text += text;
  support::write_text(setting.directory / "text.txt", text);
  const auto begun = [&] { return fs::exists(setting.directory / "run/.lock"); };
  CHECK(setting.run_and_signal(setting.flags("run", {"--steps", "1", "--threads", "1"}), SIGTERM, begun) == 75);
  CHECK(!fs::exists(setting.directory / "run"));
}

TEST_CASE("a finished run resumed has nothing to do and changes nothing") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "3"}).code == 0);
  const std::string model = setting.file("run/model.safetensors");
  const auto saved_at = fs::last_write_time(setting.directory / "run/checkpoint-3/MANIFEST.json");
  const Outcome again = setting.run("run", {"--steps", "3", "--resume"});
  CHECK(again.code == 0);
  for (const char* what : {"rate goes on", "stopped early"}) CHECK(again.out.find(what) == std::string::npos);
  CHECK(fs::last_write_time(setting.directory / "run/checkpoint-3/MANIFEST.json") == saved_at);
  CHECK(setting.file("run/model.safetensors") == model);
  CHECK(setting.metrics("run").size() == 3);
}

TEST_CASE("a checkpoint with one bit flipped gives way to the older one, and that is said") {
  const PretrainSetting setting;
  const std::vector<std::string> flags = {"--steps", "5", "--save-every", "2"};
  REQUIRE(setting.run("whole", flags).code == 0);
  fs::copy(setting.directory / "whole", setting.directory / "run", fs::copy_options::recursive);
  std::string weights = setting.file("run/checkpoint-5/model.safetensors");
  weights[weights.size() / 2] ^= 1;
  support::write_text(setting.directory / "run/checkpoint-5/model.safetensors", weights);
  std::vector<std::string> resume = flags;
  resume.push_back("--resume");
  const Outcome resumed = setting.run("run", resume);
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(resumed.error.starts_with("warning: checkpoint-5: model.safetensors: tensor \""));
  CHECK(resumed.out.find("resumed from " + (setting.directory / "run/checkpoint-4").string()) != std::string::npos);
  setting.check_same("run", "whole", 5);
}

TEST_CASE("a run is not resumed with other settings or another input, and the differences are named") {
  const PretrainSetting setting;
  const support::Flags held_out = {"--eval-input", setting.directory / "held_out.txt"};
  REQUIRE(setting.run("run", support::joined({"--steps", "3"}, held_out)).code == 0);
  const Outcome settings = setting.run("run", support::joined({"--steps", "2", "--seed", "7", "--resume"}, held_out));
  CHECK(settings.code == 2);
  CHECK(settings.error.find("--steps was 3, now 2; --seed was 42, now 7; hint: ") != std::string::npos);
  CHECK(settings.out.empty());  // it is refused before anything is planned
  const Outcome evaluation = setting.run(
      "run", support::joined({"--eval-input", setting.directory / "text.txt", "--steps", "3", "--resume"}, {}));
  CHECK(evaluation.code == 2);
  CHECK(evaluation.error.find("text.txt has other contents than") != std::string::npos);
  support::write_text(setting.directory / "text.txt", PretrainSetting::text(13));
  const Outcome input = setting.run("run", support::joined({"--steps", "3", "--resume"}, held_out));
  CHECK(input.code == 2);
  CHECK(input.error.find("text.txt has other contents") != std::string::npos);
  CHECK(fs::exists(setting.directory / "run/checkpoint-3"));  // nothing was lost
}

TEST_CASE("--resume with --output alone goes on with every flag of the run from any directory") {
  const PretrainSetting setting;
  REQUIRE(setting.run("whole", {"--steps", "6", "--save-every", "3", "--seed", "5"}).code == 0);
  fs::copy(setting.directory / "whole", setting.directory / "run", fs::copy_options::recursive);
  fs::remove_all(setting.directory / "run/checkpoint-6");
  fs::remove(setting.directory / "run/model.safetensors");
  const Outcome resumed = support::run_program("pretrain", {"--resume", "--output", setting.directory / "run"});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  setting.check_same("run", "whole", 6);
  const Outcome other = support::run_program("finetune", {"--resume", "--output", setting.directory / "run"});
  CHECK(other.code == 2);
  CHECK(other.error.find("expected a run of finetune, got one of pretrain") != std::string::npos);
}

TEST_CASE("a run goes on with the same bits when configuration, vocabulary or start model are gone") {
  const PretrainSetting setting;
  REQUIRE(setting.run("whole", {"--steps", "6", "--save-every", "3"}).code == 0);
  const support::Flags init = {"--init",           setting.directory / "whole",
                               "--input",          setting.directory / "text.txt",
                               "--output",         setting.directory / "second",
                               "--batch-size",     "10",
                               "--max-seq-length", "24",
                               "--log-every",      "1",
                               "--steps",          "6",
                               "--save-every",     "3"};
  REQUIRE(support::run_program("pretrain", init).code == 0);
  for (const char* run : {"whole", "second"})
    fs::copy(setting.directory / run, setting.directory / (run + std::string("-on")), fs::copy_options::recursive);
  const auto goes_on = [&](const std::string& run) {
    for (const char* gone : {"/checkpoint-6", "/model.safetensors"})
      fs::remove_all(setting.directory / (run + "-on" + gone));
    const Outcome outcome =
        support::run_program("pretrain", {"--resume", "--output", setting.directory / (run + "-on")});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(outcome.error.find(": expected the file that the run began with, got none; ") != std::string::npos);
    setting.check_same(run + "-on", run, 6);
  };
  fs::remove(setting.directory / "vocab.txt");
  goes_on("whole");
  fs::remove(setting.directory / "config.json");
  goes_on("whole");
  fs::rename(setting.directory / "whole", setting.directory / "moved");
  goes_on("second");
}

TEST_CASE("an installed program resumes from any directory what it began in another one") {
  const PretrainSetting setting;
  REQUIRE(setting.run("first", {"--steps", "1"}).code == 0);
  const std::string program = setting.directory / "bertrand-pretrain";
  fs::create_symlink(bertrand::paths::binary + "/pretrain", program);
  const std::string begin = "cd '" + (setting.directory / "").string() + "' && '" + program +
                            "' --init first --input text.txt --output run --steps 2 --save-every 1 --max-seq-length 24 "
                            "--batch-size 10 >begin.log 2>&1";
  REQUIRE(std::system(begin.c_str()) == 0);
  fs::remove_all(setting.directory / "run/checkpoint-2");
  const std::string resume = "'" + program + "' --resume --output '" + (setting.directory / "run").string() + "' >'" +
                             (setting.directory / "resume.log").string() + "' 2>&1";
  CHECK_MESSAGE(std::system(resume.c_str()) == 0, setting.file("resume.log"));
  CHECK(fs::exists(setting.directory / "run/checkpoint-2"));
}

TEST_CASE("--resume with a mistyped --output says that there is no run") {
  const PretrainSetting setting;
  const std::string nothing = setting.directory / "rnu";
  const std::string error = "error: --resume: expected a run in " + nothing + ", got no run_config.json there";
  for (const auto& [program, hint] :
       {std::pair("pretrain", ""), std::pair("finetune", " Of a sweep give the whole command")}) {
    const Outcome outcome = support::run_program(program, {"--resume", "--output", nothing});
    CHECK(outcome.code == 2);
    CHECK(outcome.error == error + "; hint: is --output right?" + hint + "\n");
  }
}

TEST_CASE("a replayed command keeps the name of a preset and switches that were given a value") {
  const PretrainSetting setting;
  const std::string begin = "cd '" + (setting.directory / "").string() + "' && '" + bertrand::paths::binary +
                            "/pretrain' --config tiny --vocab-file vocab.txt --input=text.txt --output tiny --steps 2 "
                            "--save-every=1 --shuffle=false --max-seq-length 24 --batch-size 10 >begin.log 2>&1";
  REQUIRE(std::system(begin.c_str()) == 0);  // its directory has the preset's name
  fs::remove_all(setting.directory / "tiny/checkpoint-2");
  const Outcome resumed = support::run_program("pretrain", {"--resume", "--output", setting.directory / "tiny"});
  CHECK_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(fs::exists(setting.directory / "tiny/checkpoint-2"));
}

TEST_CASE("a run is made longer by raising its steps and says how the rate goes on") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "4"}).code == 0);
  const Outcome longer =
      support::run_program("pretrain", {"--resume", "--output", setting.directory / "run", "--steps", "6"});
  REQUIRE_MESSAGE(longer.code == 0, longer.error);
  CHECK(longer.out.find("--steps was 4, now 6") != std::string::npos);
  CHECK(longer.out.find("rate goes on at 0.001\n") != std::string::npos);
  CHECK(setting.metrics("run").size() == 6);
}

TEST_CASE("a run may go on with a smaller micro-batch and says that the last bits change") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "4", "--save-every", "2"}).code == 0);
  fs::remove_all(setting.directory / "run/checkpoint-4");
  const Outcome smaller = support::run_program(
      "pretrain", {"--resume", "--output", setting.directory / "run", "--micro-batch-size", "5", "--replicas", "2"});
  REQUIRE_MESSAGE(smaller.code == 0, smaller.error);
  CHECK(smaller.out.find("--micro-batch-size was 10, now 5: gradients are added up in another order") !=
        std::string::npos);
  const Outcome larger =
      support::run_program("pretrain", {"--resume", "--output", setting.directory / "run", "--micro-batch-size", "8"});
  CHECK(larger.code == 2);
}

TEST_CASE("a directory with a model and no checkpoint is not begun anew by --resume") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "2"}).code == 0);
  fs::remove_all(setting.directory / "run/checkpoint-2");
  const std::string model = setting.file("run/model.safetensors");
  const Outcome refused = setting.run("run", {"--steps", "1", "--resume"});
  CHECK(refused.code == 2);
  CHECK(refused.error.find("expected a checkpoint to go on from, got none beside model.safetensors; hint: ") !=
        std::string::npos);
  CHECK(setting.file("run/model.safetensors") == model);
}

TEST_CASE("SIGHUP saves as SIGTERM does") {
  const PretrainSetting setting;
  const auto has_logged = [&] { return setting.has_logged("run"); };
  REQUIRE(setting.run_and_signal(setting.flags("run", {"--steps", "4000"}), SIGHUP, has_logged) == 75);
  CHECK(!setting.metrics("run").empty());
}

TEST_CASE("a pipe that nobody reads does not end the training") {
  const PretrainSetting setting;
  std::string command = "'" + bertrand::paths::binary + "/pretrain'";
  for (const std::string& flag : setting.flags("run", {"--steps", "40"})) command += " '" + flag + "'";
  const std::string code = setting.directory / "code";
  CHECK(std::system(("{ " + command + " 2>/dev/null; echo $? > '" + code + "'; } | true").c_str()) == 0);
  CHECK(support::read_text(code) == "5\n");
  CHECK(fs::exists(setting.directory / "run/checkpoint-40/MANIFEST.json"));
}

TEST_CASE("checkpoints are made by the clock too") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "40", "--save-every-minutes", "0.000001", "--keep", "99"}).code == 0);
  CHECK(fs::exists(setting.directory / "run/checkpoint-7"));
  REQUIRE(setting.run("off", {"--steps", "40", "--save-every-minutes", "0", "--keep", "99"}).code == 0);
  CHECK_FALSE(fs::exists(setting.directory / "off/checkpoint-7"));
}

TEST_CASE("without --max-seq-length the model's positions bound the length of an example") {
  const PretrainSetting setting;  // 32 positions
  support::Flags flags = setting.flags("run", {"--steps", "1"});
  const auto at = std::find(flags.begin(), flags.end(), "--max-seq-length");
  flags.erase(at, at + 2);
  const Outcome outcome = support::run_program("pretrain", flags);
  CHECK_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(setting.file("run/run_config.json").find("\"max-seq-length\": 32") != std::string::npos);
}

TEST_CASE("a profile survives a stop and replaces no file of the run") {
  const PretrainSetting setting;
  const auto has_logged = [&] { return setting.has_logged("run"); };
  const std::string trace = setting.directory / "trace.json";
  REQUIRE(setting.run_and_signal(setting.flags("run", {"--steps", "4000", "--profile", trace}), SIGTERM, has_logged) ==
          75);
  CHECK(support::read_text(trace).find("traceEvents") != std::string::npos);
  const Outcome refused = setting.run("run", {"--resume", "--profile", setting.directory / "run/model.safetensors"});
  CHECK(refused.code == 2);
}

TEST_CASE("an output directory that holds a run is refused, or overwritten when asked") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "3"}).code == 0);
  const Outcome refused = setting.run("run", {"--steps", "2"});
  CHECK(refused.code == 2);
  CHECK(refused.error.find("--resume") != std::string::npos);
  REQUIRE(setting.run("run", {"--steps", "2", "--overwrite"}).code == 0);
  CHECK(setting.metrics("run").size() == 2);
  CHECK_FALSE(fs::exists(setting.directory / "run/checkpoint-3"));
}
