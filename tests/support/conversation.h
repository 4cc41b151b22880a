// A program that is talked to while it runs, through pipes.
#pragma once
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/paths.h"

namespace support {

class Conversation {
 public:
  Conversation(const std::string& program, const std::vector<std::string>& arguments) {
    int in[2], out[2];
    if (pipe(in) != 0 || pipe(out) != 0) _exit(127);
    child_ = fork();
    if (child_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      for (const int end : {in[0], in[1], out[0], out[1]}) close(end);
      std::string path = bertrand::paths::binary + "/" + program;
      std::vector<std::string> all = arguments;
      std::vector<char*> argv = {path.data()};
      for (std::string& argument : all) argv.push_back(argument.data());
      argv.push_back(nullptr);
      execv(path.c_str(), argv.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ~Conversation() {
    if (child_ > 0) ::kill(child_, SIGKILL), finish();
    hang_up();
    close(out_);
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void say(const std::string& text) const {
    if (::write(in_, text.data(), text.size()) < 0) _exit(127);
  }
  /// What comes up to the end of a line; less if nothing comes for two minutes or no more will.
  std::string line() const {
    std::string line;
    char c = 0;
    pollfd input{.fd = out_, .events = POLLIN, .revents = 0};
    while (::poll(&input, 1, 120'000) > 0 && ::read(out_, &c, 1) == 1 && c != '\n') line += c;
    return line;
  }
  void hang_up() {
    if (in_ >= 0) close(in_);
    in_ = -1;
  }
  void stop_reading() {
    close(out_);
    out_ = -1;
  }
  void signal(int number) const { ::kill(child_, number); }
  /// Waits for its end: the exit code, or 128 and the number of the signal.
  int finish() {
    int status = 0;
    waitpid(child_, &status, 0);
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t child_ = -1;
  int in_ = -1, out_ = -1;
};

}  // namespace support
