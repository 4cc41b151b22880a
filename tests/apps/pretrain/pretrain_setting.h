// A very small pre-training task: text, vocabulary and model shape, and a way to run and to kill the program.
#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>

#include "support/paths.h"
#include "support/program.h"
#include "support/soon.h"

namespace support {

using Flags = std::vector<std::string>;

inline Flags joined(Flags a, const Flags& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct PretrainSetting {
  TemporaryDirectory directory;

  explicit PretrainSetting(int documents = 12) {
    std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
    for (char c = 'a'; c <= 'z'; ++c) words += std::string(1, c) + "\n##" + c + "\n";
    write_text(directory / "vocab.txt", words);
    write_text(directory / "config.json",
               R"({"vocab_size": 57, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
                   "intermediate_size": 32, "max_position_embeddings": 32, "type_vocab_size": 2})");
    write_text(directory / "text.txt", text(documents));
    write_text(directory / "held_out.txt", text(5));
  }

  static std::string text(int documents) {
    std::string text;
    for (int d = 0; d < documents; ++d) {
      for (int s = 0; s < 8; ++s) {
        for (int w = 0; w <= (d * 7 + s * 5) % 9; ++w)
          text += std::string(1, static_cast<char>('a' + (d + s + w) % 26)) + (w % 3 == 2 ? "" : " ");
        text += "\n";
      }
      text += "\n";
    }
    return text;
  }

  std::vector<std::string> flags(const std::string& output, const std::vector<std::string>& more = {}) const {
    return with_defaults({"--config", directory / "config.json", "--vocab-file", directory / "vocab.txt", "--input",
                          directory / "text.txt", "--output", directory / output, "--batch-size", "10",
                          "--max-seq-length", "24", "--log-every", "1", "--learning-rate", "0.003"},
                         more);
  }

  Outcome run(const std::string& output, const std::vector<std::string>& more) const {
    return run_program("pretrain", flags(output, more));
  }

  /// Starts the program, waits until `is_ready` or it has ended, sends it `signal`, and returns its exit code (128 +
  /// signal if it was killed).
  int run_and_signal(const Flags& arguments, int signal, const std::function<bool()>& is_ready) const {
    const pid_t child = fork();
    if (child == 0) {
      const std::string program = bertrand::paths::binary + "/pretrain";
      std::vector<char*> argv{const_cast<char*>(program.c_str())};
      for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
      argv.push_back(nullptr);
      const int nowhere = open("/dev/null", O_WRONLY);
      dup2(nowhere, STDOUT_FILENO);
      dup2(nowhere, STDERR_FILENO);
      execv(program.c_str(), argv.data());
      _exit(127);
    }
    const auto has_ended = [&] {
      siginfo_t end{};
      return waitid(P_PID, static_cast<id_t>(child), &end, WEXITED | WNOHANG | WNOWAIT) == 0 && end.si_pid == child;
    };
    const bool in_time = soon([&] { return is_ready() || has_ended(); });
    CHECK_MESSAGE(in_time, "the program is not ready after two minutes");
    kill(child, in_time ? signal : SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::string file(const std::string& name) const { return read_text(directory / name); }
  std::vector<nlohmann::json> metrics(const std::string& output) const { return steady_metrics(directory / output); }
  /// Of the last evaluation; "" of a run without one.
  std::string results(const std::string& run) const { return read_if_there(directory / run / "eval_results.json"); }
  bool has_logged(const std::string& output) const {
    return !read_if_there(directory / output / "metrics.jsonl").empty();
  }

  /// Checks everything that a finished run of `steps` steps leaves and that must not depend on who computed it, or on
  /// how often it was interrupted.
  void check_same(const std::string& run, const std::string& expected, int steps) const {
    const std::string last = "/checkpoint-" + std::to_string(steps);
    for (const std::string name : {"/model.safetensors", "/config.json", "/vocab.txt"})
      CHECK_MESSAGE(file(run + name) == file(expected + name), (run + name));
    CHECK(results(run) == results(expected));
    for (const std::string name : {"/model.safetensors", "/optimizer.safetensors", "/resume.json"}) {
      CHECK_MESSAGE(!file(expected + last + name).empty(), (expected + last + name));
      CHECK_MESSAGE(file(run + last + name) == file(expected + last + name), (run + last + name));
    }
    CHECK(metrics(run) == metrics(expected));
  }
};

}  // namespace support
