// Training on the CUDA backend: the program from end to end with the kernels emulated, and the module for real GPUs on
// a machine that has none.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "apps/pretrain/pretrain_setting.h"
#include "apps/pretrain/run.h"
#include "apps/training_cli/training_main.h"

using namespace support;

namespace {

std::vector<double> losses(const PretrainSetting& setting, const std::string& output) {
  std::vector<double> all;
  for (const auto& line : setting.metrics(output))
    if (line.contains("loss")) all.push_back(line["loss"]);
  return all;
}

/// What the emulation offers to tests; `pretrain` finds the same module loaded.
struct Emulation {
  void (*lose_gpu)(int launches);
  int (*launches)();
  Emulation() {
    void* const module =
        dlopen((bertrand::paths::binary + "/libbertrand_cuda_emulated.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    REQUIRE(module != nullptr);
    lose_gpu = reinterpret_cast<void (*)(int)>(dlsym(module, "bertrand_lose_gpu"));
    launches = reinterpret_cast<int (*)()>(dlsym(module, "bertrand_launches"));
  }
};

/// The program in a process of its own that does not exec, so that what is done to the emulation before holds in it.
Outcome run_forked(const PretrainSetting& setting, std::vector<std::string> arguments,
                   const std::function<void()>& before, const std::function<void()>& after) {
  const std::filesystem::path error = setting.directory / "error.txt";
  const pid_t child = fork();
  if (child == 0) {
    const int to = open(error.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(to, STDERR_FILENO);
    before();
    arguments.insert(arguments.begin(), "pretrain");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    bertrand::pretrain::Options options;
    const int code = bertrand::cli::run_training_main(
        "", static_cast<int>(argv.size()), argv.data(),
        {.add_flags = [&](auto& table) { bertrand::pretrain::add_flags(table, options); },
         .settings = options.settings,
         .body =
             [&] {
               bertrand::pretrain::complete(options);
               bertrand::pretrain::run(options);
             }});
    after();
    std::fflush(nullptr);
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return {
      .code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), .out = {}, .error = read_text(error)};
}

}  // namespace

TEST_CASE("pretrain on the emulated GPU has the losses it has on the CPU, in every precision") {
  const PretrainSetting setting;
  for (const auto& [precision, bound] : {std::pair{"f32", 1e-5}, {"bf16", 5e-3}, {"f16", 1e-3}}) {
    CAPTURE(precision);
    for (const std::string device : {"cpu", "emulated-cuda"}) {
      const Outcome outcome =
          setting.run(device, {"--steps", "3", "--overwrite", "--precision", precision, "--device", device});
      REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    }
    const auto cpu = losses(setting, "cpu"), gpu = losses(setting, "emulated-cuda");
    REQUIRE(cpu.size() >= 3);
    REQUIRE(gpu.size() == cpu.size());
    for (std::size_t i = 0; i < cpu.size(); ++i) CHECK(std::abs(gpu[i] - cpu[i]) <= bound * std::abs(cpu[i]));
  }
}

TEST_CASE("TF32 and measured products are choices of a GPU") {
  const PretrainSetting setting;
  const Outcome outcome =
      setting.run("run", {"--steps", "2", "--precision", "tf32", "--measured-products", "--device", "emulated-cuda"});
  CHECK_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(nlohmann::json::parse(setting.file("run/run_config.json")).at("settings").at("precision") == "tf32");
  const Outcome refused = setting.run("other", {"--steps", "2", "--measured-products"});
  CHECK(refused.code == 2);
  CHECK(refused.error == "error: --measured-products: expected a cuda device, got cpu\n");
}

TEST_CASE("a GPU that is not there is refused in one line") {
  const PretrainSetting setting;
  const Outcome outcome = setting.run("nowhere", {"--steps", "1", "--device", "emulated-cuda:7"});
  CHECK(outcome.code == 2);
  CHECK(outcome.error == "error: --device cuda:7: there are 4 GPUs, numbered from 0\n");
}

TEST_CASE("a program built with the CUDA module says in one line that a machine has no driver, and the reverse") {
  const PretrainSetting setting;
  const Outcome outcome = setting.run("nowhere", {"--steps", "1", "--device", "cuda"});
  if (!std::filesystem::exists(bertrand::paths::binary + "/libbertrand_cuda.so")) {
    CHECK(outcome.code == 2);
    CHECK(outcome.error.starts_with("error: --device cuda: expected the module libbertrand_cuda.so in "));
    CHECK(outcome.error.ends_with(", found none; hint: build with -DBERTRAND_CUDA=ON\n"));
  } else if (!std::filesystem::exists("/dev/nvidiactl")) {
    CHECK(outcome.code == 2);
    CHECK(outcome.error == "error: --device cuda: this machine has no NVIDIA driver\n");
  } else {
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
  }
}

TEST_CASE("a GPU that is lost in the middle of a run ends it with 8, and the run goes on from its last checkpoint") {
  const Emulation emulation;
  const PretrainSetting setting;
  const std::vector<std::string> flags{"--steps", "6", "--save-every", "2", "--device", "emulated-cuda"};
  const Outcome whole = run_forked(
      setting, setting.flags("whole", flags), [] {}, [&] { fmt::print(stderr, "{}", emulation.launches()); });
  REQUIRE(whole.code == 0);
  const int launches = std::stoi(whole.error.substr(whole.error.find_last_not_of("0123456789") + 1));

  // All steps are alike, so this is the fourth or the fifth.
  const Outcome lost = run_forked(
      setting, setting.flags("run", flags), [&] { emulation.lose_gpu(launches * 6 / 10); }, [] {});
  CHECK(lost.code == 8);
  CHECK(lost.error.find("error: step ") != std::string::npos);
  CHECK(lost.error.find("cuda: ") != std::string::npos);
  CHECK(lost.error.find("last checkpoint: " + (setting.directory / "run/checkpoint-").string()) != std::string::npos);

  std::vector<std::string> resumed = flags;
  resumed.emplace_back("--resume");
  const Outcome outcome = setting.run("run", resumed);
  CHECK_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.error.find("warning") == std::string::npos);  // its newest checkpoint verified
  CHECK(setting.file("run/model.safetensors") == setting.file("whole/model.safetensors"));
}
