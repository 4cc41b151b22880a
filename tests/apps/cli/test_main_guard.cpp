// The command line as every program reads it, tried on the programs themselves.
#include "apps/cli/main_guard.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <new>
#include <sstream>

#include "io/machine.h"
#include "io/say.h"
#include "support/conversation.h"
#include "support/program.h"

using namespace bertrand;
using support::Outcome;
using support::run_program;

namespace {

/// What a program says against these flags: one line, after "error: ".
std::string refusal(const std::string& program, const std::vector<std::string>& arguments, int code = 2) {
  const Outcome outcome = run_program(program, arguments);
  CAPTURE(outcome.error);
  CHECK(outcome.code == code);
  CHECK(outcome.out == "");
  REQUIRE(outcome.error.starts_with("error: "));
  REQUIRE(outcome.error.find('\n') == outcome.error.size() - 1);
  return outcome.error.substr(7, outcome.error.size() - 8);
}

}  // namespace

TEST_CASE("every program says its version and what was built, and its help names the exit codes") {
  for (const char* program : {"prepare", "pretrain", "finetune", "extract"}) {
    CAPTURE(program);
    const Outcome version = run_program(program, {"--version"});
    CHECK(version.code == 0);
    CHECK(version.out.starts_with(std::string(program) + " (bertrand) "));
    CHECK(version.out.find("\nmodules built: cpu_emulated-pairs, cpu_emulated-tiles, cpu_x86-64-v") !=
          std::string::npos);
    CHECK(version.out.find("\nCPU kernels that this processor runs: ") != std::string::npos);
    const Outcome help = run_program(program, {"--help"});
    CHECK(help.code == 0);
    CHECK(help.out.find("Exit codes: 0 done") != std::string::npos);
    CHECK(help.out.find(", 130 or 143 ended at once by SIGINT or SIGTERM: ") != std::string::npos);
    CHECK(help.error == "");
    CHECK(help.out.find("{false}") == std::string::npos);
  }
  CHECK(run_program("pretrain", {"--help"}).out.find("--shuffle,--no-shuffle ") != std::string::npos);
}

TEST_CASE("prepare tokens ends at the first SIGTERM or SIGINT, as its help says") {
  const support::TemporaryDirectory directory;
  const std::string words = directory / "words";
  REQUIRE(::mkfifo(words.c_str(), 0600) == 0);
  for (const int signal : {SIGTERM, SIGINT}) {
    support::Conversation work("prepare", {"tokens", "--vocab-file", words});
    const int pipe = ::open(words.c_str(), O_WRONLY);  // waits until the program reads
    work.signal(signal);
    CHECK(work.finish() == 128 + signal);
    ::close(pipe);
  }
}

TEST_CASE("a flag that is needed is named with the first words of its help") {
  CHECK(refusal("export", {"--model", "m", "--output", "o"}) ==
        "--format: expected NAME, got none; hint: --format is what to write");
}

TEST_CASE("what a program takes without a flag is named to who gives it one") {
  CHECK(refusal("prepare", {"tokens", "--vocab-file", "v", "--input", "a.txt"}) ==
        "unknown option --input; hint: FILE stands without a flag; --help lists all");
}

TEST_CASE("the help of a program and of its commands has lines of at most 100 characters") {
  const std::vector<std::pair<std::string, std::vector<std::string>>> pages = {
      {"finetune", {"--help"}}, {"prepare", {"corpus", "--help"}}, {"evaluate", {"tokens", "--help"}}};
  for (const auto& [program, arguments] : pages) {
    std::istringstream help(run_program(program, arguments).out);
    for (std::string line; std::getline(help, line);) CHECK_MESSAGE(line.size() <= 100, line);
  }
}

TEST_CASE("an unknown flag names the nearest one, before anything that is missing") {
  CHECK(refusal("pretrain", {"--bach-size", "3"}) == "unknown option --bach-size; did you mean --batch-size?");
  CHECK(refusal("pretrain", {"--outptu=x"}) == "unknown option --outptu; did you mean --output?");
  CHECK(refusal("finetune", {"--zzzzzzzzz"}) == "unknown option --zzzzzzzzz; hint: --help lists all");
  CHECK(refusal("extract", {"stray"}) == "unknown argument stray; hint: --help lists all");
  const std::string commands = "prepare: expected one of sentences, tokens, records, corpus, dump, squad, vocab, got ";
  CHECK(refusal("prepare", {"tokns"}) == commands + "tokns; did you mean tokens?");
  // A flag of the command that was meant is no option of the program, and is not what is wrong.
  CHECK(refusal("prepare", {"sentence", "--input", "raw.txt"}) == commands + "sentence; did you mean sentences?");
  CHECK(refusal("prepare", {"text", "--input", "raw.txt"}) == commands + "text; hint: prepare --help");
  CHECK(refusal("prepare", {"--input", "raw.txt"}) == commands + "none; hint: prepare --help");
  CHECK(refusal("prepare", {"--verison"}) == "unknown option --verison; did you mean --version?");
}

TEST_CASE("a directory that stands without a flag is taken for the model that is missing, and for no other") {
  const support::TemporaryDirectory directory;
  const std::string model = directory / "model";
  std::filesystem::create_directory(model);
  CHECK(refusal("extract", {model}) == "unknown argument " + model + "; hint: if it is a model: --model " + model);
  CHECK(refusal("extract", {model, "--model", "m"}) == "unknown argument " + model + "; hint: --help lists all");
  CHECK(refusal("pretrain", {model}) == "unknown argument " + model + "; hint: --help lists all");  // has no --model
}

TEST_CASE("a flag without its value names what stands in its place") {
  CHECK(refusal("finetune", {"--model", "--steps", "10"}) ==
        "--model: expected PATH, got the flag --steps; hint: is a variable of the shell empty?");
  CHECK(refusal("finetune", {"--task", "mrpc", "--model"}) == "--model: expected PATH, got no value");
}

TEST_CASE("an empty name of a file or directory is refused by every program") {
  const std::string rest = ": expected a path, got an empty one; hint: is a variable of the shell empty?";
  const std::vector<std::string> task = {"--task", "mrpc", "--model", "m"};
  for (const std::string flag : {"--train", "--eval", "--predict", "--vocab-file", "--output", "--profile"}) {
    std::vector<std::string> all = task;
    all.insert(all.end(), {flag, ""});
    CHECK(refusal("finetune", all) == flag + rest);
    all.resize(task.size());
    all.push_back(flag + "=");
    CHECK(refusal("finetune", all).starts_with(flag + ": expected "));
  }
  CHECK(refusal("pretrain", {"--input", "a", ""}) == "--input" + rest);
  CHECK(refusal("evaluate", {"tokens", ""}) == "FILE" + rest);
  CHECK(refusal("prepare", {"dump", "a", ""}) == "FILE" + rest);
  CHECK(refusal("prepare", {"tokens", "--vocab-file", "v", ""}) == "FILE" + rest);
  CHECK(refusal("prepare", {"tokens", "--vocab-file=", "v"}) ==
        "--vocab-file: expected FILE, got nothing after =; hint: is a variable of the shell empty?");
  for (const std::string command : {"corpus", "records", "squad"})
    CHECK(refusal("prepare", {command, "--vocab-file", "v", "--input", "i", "--output", ""}) == "--output" + rest);
  CHECK(refusal("predict", {"--model", "m", "--input", ""}) == "--input" + rest);
  CHECK(refusal("report", {""}) == "RUN" + rest);
  CHECK(refusal("prepare", {"vocab", "--settings", ""}) == "--settings" + rest);
  CHECK(refusal("report", {"a", "--model", ""}) == "--model" + rest);
  CHECK(refusal("serve", {"--model", ""}) == "--model" + rest);
  CHECK(refusal("serve", {"--model", "x="}) == "--model: expected NAME=DIR, got x=");
  CHECK(refusal("export", {"--model", "m", "--format", "onnx", "--output", ""}) == "--output" + rest);
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  support::write_text(file, "train = \"\"\nlanguage = \"\"\nseed = 3\n");
  std::vector<std::string> all = task;
  all.insert(all.end(), {"--settings", file});
  CHECK(refusal("finetune", all) == file + ": --train" + rest);
}

TEST_CASE("an empty value is refused by every program, from wherever it comes") {
  const std::string hint = ", got an empty value; hint: is a variable of the shell empty?";
  const std::vector<std::string> task = {"--task", "mrpc", "--model", "m"};
  const auto finetune = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = task;
    all.insert(all.end(), more.begin(), more.end());
    return refusal("finetune", all);
  };
  CHECK(finetune({"--freeze", ""}) == "--freeze: expected LIST" + hint);
  CHECK(finetune({"--label-separator", ""}) == "--label-separator: expected TEXT" + hint);
  CHECK(finetune({"--steps", ""}) == "--steps: expected INT" + hint);
  CHECK(refusal("extract", {"--model", "m", "--input", "i", "--output", "o", "--layers", ""}) ==
        "--layers: expected INTS" + hint);
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  support::write_text(file, "freeze = \"\"\n");
  CHECK(finetune({"--settings", file}) == file + ": --freeze: expected LIST" + hint);
}

TEST_CASE("a switch that is turned on and off is refused") {
  for (const std::vector<std::string>& both :
       {std::vector<std::string>{"--shuffle", "--no-shuffle"}, {"--no-shuffle", "--steps", "3", "--shuffle"}})
    CHECK(refusal("pretrain", both) == both.front() + ", " + both.back() + ": expected one of them, got both");
  CHECK(refusal("pretrain", {"--no-shuffle", "--no-shuffle"}).starts_with("--input: expected FILE, got none"));
}

TEST_CASE("memory that runs out where nothing may be thrown is one line and an exit code") {
  const support::TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen((directory / "error").c_str(), "w", stderr) == nullptr) _exit(1);
    char name[] = "program", *arguments[] = {name, nullptr};
    const auto need_memory = [] { throw std::bad_alloc(); };
    _exit(cli::run_main(
        "", 1, arguments, [](CLI::App&) {}, [&]() noexcept { need_memory(); }));
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
  CHECK(support::read_text(directory / "error") ==
        "error: out of memory on the host; hint: ulimit -v or a container may limit what there is\n");
}

TEST_CASE("an error of another process than the first of several begins with process and host") {
  // Open MPI's names, and Slurm's.
  for (const auto& [processes, rank] :
       {std::pair("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), std::pair("SLURM_STEP_NUM_TASKS", "SLURM_PROCID")}) {
    setenv(processes, "2", 1);
    const std::string own = "unknown option --outptu; did you mean --output?";
    setenv(rank, "0", 1);
    CHECK(refusal("pretrain", {"--outptu=x"}) == own);
    setenv(rank, "1", 1);
    CHECK(refusal("pretrain", {"--outptu=x"}) == "process 1 (host " + io::host_name() + "): " + own);
    unsetenv(processes);
    unsetenv(rank);
  }
}

TEST_CASE("a program that works alone and was started several times says so once") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "tags", "a B-X B-X\n");
  const auto said = [&](const char* processes, const char* rank) {
    setenv("PMI_SIZE", processes, 1);
    setenv("PMI_RANK", rank, 1);
    const Outcome outcome = run_program("evaluate", {"tokens", directory / "tags"});
    unsetenv("PMI_SIZE");
    unsetenv("PMI_RANK");
    CHECK(outcome.code == 0);
    return outcome.error;
  };
  CHECK(said("2", "0") ==
        "warning: 2 processes were started together, and each does all that evaluate is asked for; hint: start it "
        "without mpirun or srun\n");
  CHECK(said("2", "1").empty());
  CHECK(said("1", "0").empty());
}

TEST_CASE("no control character reaches the terminal") {
  CHECK(refusal("pretrain", {"--a\tb\r\x1B[31m\x7F\xC2\x9B\xC3\xA9"}) ==
        "unknown option --a b  [31m   \xC3\xA9; hint: --help lists all");
}

TEST_CASE("what is missing, comes twice or does not go together is said in one line") {
  CHECK(refusal("pretrain", {"--output", "x"}) ==
        "--input: expected FILE, got none; hint: --input is what to train on");
  for (const char* flag : {"--resume", "--overwrite"})
    CHECK(refusal("pretrain", {flag}) ==
          std::string("--output: expected DIR, got none; hint: ") + flag + " is about what is there");
  CHECK(refusal("evaluate", {"tokens"}) ==
        "tokens: expected FILE, got none; hint: FILE is lines of word, true tag and predicted tag, a blank line ends a "
        "sentence");
  CHECK(refusal("prepare", {}) ==
        "prepare: expected one of sentences, tokens, records, corpus, dump, squad, vocab, got none; hint: prepare "
        "--help");
  CHECK(refusal("pretrain", {"--input", "x", "--output"}) == "--output: expected DIR, got no value");
  CHECK(refusal("pretrain", {"--input", "x", "--steps", "1", "--epochs", "2"}) ==
        "--steps, --epochs: expected one of them, got both");
  CHECK(refusal("pretrain", {"--input", "x", "--init", "m", "--config", "base"}) ==
        "--config, --init: expected one of them, got both; hint: leave --config out: the directory of --init has its "
        "own");
  CHECK(refusal("pretrain", {"--input", "x", "--output", "x", "--resume", "--overwrite"}) ==
        "--config, --init: expected one of them, got none; hint: --config tiny makes a small new model, --init PATH "
        "starts from one that is there");
}

TEST_CASE("a flag that takes one value and has two is refused with both values") {
  CHECK(refusal("predict", {"--model", "reviews", "/dev/null"}) ==
        "--model: expected one value, got reviews and /dev/null; hint: is /dev/null for --input?");
  CHECK(refusal("finetune", {"--eval-split", "0.1", "0.2"}) == "--eval-split: expected one value, got 0.1 and 0.2");
  CHECK(refusal("pretrain", {"--batch-size", "8", "--batch-size", "many"}) ==
        "--batch-size: expected one value, got 8 and many");
  CHECK(refusal("finetune", {"--train=a.csv", "--train", "b.csv"}) ==
        "--train: expected one value, got a.csv and b.csv");
}

TEST_CASE("a mistyped choice names the nearest one") {
  CHECK(refusal("pretrain", {"--optimizer", "adam"}) ==
        "--optimizer: expected one of adamw, adamw-google, lamb, lamb-decayed, got \"adam\"; did you mean adamw?");
  CHECK(refusal("finetune", {"--task", "mprc", "--model", "m", "--train", "t", "--output", "o"})
            .ends_with("got mprc; did you mean mrpc?"));
}

TEST_CASE("what cannot be printed is an error, also where the first of it was long ago") {
  for (const std::string program : {"prepare --help", "pretrain --version"}) {
    const std::string command = bertrand::paths::binary + "/" + program + " >/dev/full 2>/dev/null";
    CHECK(WEXITSTATUS(std::system(command.c_str())) == 5);
  }
}

TEST_CASE("what could not be said long ago is an error with the reason that it had then") {
  const support::TemporaryDirectory directory;
  const pid_t child = fork();
  if (child == 0) {
    if (!std::freopen("/dev/full", "w", stdout) || !std::freopen((directory / "error").c_str(), "w", stderr)) _exit(1);
    char name[] = "program", *arguments[] = {name, nullptr};
    const int code = cli::run_main(
        "", 1, arguments, [](CLI::App&) {}, [] { io::say("a step\n"); });
    std::fflush(stderr);
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 5);
  CHECK(support::read_text(directory / "error") == "error: standard output: write: No space left on device\n");
}

TEST_CASE("what nobody can be told about a work that is done is no error") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "text", "a b. c\n");
  const std::string command =
      fmt::format("{}/prepare vocab --input {} --output {} 2>/dev/full", bertrand::paths::binary,
                  (directory / "text").string(), (directory / "vocab").string());
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 0);
}

TEST_CASE("flags may be written with underscores") {
  CHECK(refusal("pretrain", {"--batch_size", "0"}) ==
        "--batch-size: expected a whole number, 1 to 16777216, got \"0\"");
}

TEST_CASE("a path that the system refuses is an error of input and output") {
  const std::string name(300, 'n');  // longer than any file name may be
  const support::TemporaryDirectory directory;
  const std::string error = refusal(
      "finetune", {"--task", "sst2", "--model", directory / "m", "--train", "t", "--output", directory / name}, 5);
  CHECK(error.find("File name too long") != std::string::npos);
}

TEST_CASE("memory that runs out names a flag that the program has, or what may limit it") {
  const support::TemporaryDirectory directory;
  const auto error_with = [&](const std::vector<std::string>& flags) {
    cli::Program program("", "p", [&](CLI::App& app) {
      for (const std::string& flag : flags) app.add_option(flag)->type_name("INT");
    });
    std::string name = "p";
    char* argv[] = {name.data(), nullptr};
    const int before = dup(STDERR_FILENO),
              file = open((directory / "error").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(file, STDERR_FILENO);
    const int code = program.run(1, argv, [](const auto&) { throw std::bad_alloc(); });
    dup2(before, STDERR_FILENO);
    close(before);
    close(file);
    CHECK(code == 7);
    return support::read_text(directory / "error");
  };
  const std::string error = "error: out of memory on the host";
  CHECK(error_with({"--batch-size", "--micro-batch-size"}) ==
        error + "; hint: a smaller --micro-batch-size needs less\n");
  CHECK(error_with({"--max-batch-tokens"}) == error + "; hint: a smaller --max-batch-tokens needs less\n");
  CHECK(error_with({"--batch-size"}) == error + "; hint: a smaller --batch-size needs less\n");
  CHECK(error_with({"--seed"}) == error + "; hint: ulimit -v or a container may limit what there is\n");
}
