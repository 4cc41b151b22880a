// How a process ends that is to be ended by what it runs.
#pragma once
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>

namespace bertrand::testing {

struct End {
  int code = 0;
  double seconds = 0;
  std::string said;
};

/// Runs `body`, which is to be ended, in a process of its own; one that goes on for a minute ends with 1.
template <class Body>
End end_of(const Body& body) {
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe_ends[1], STDERR_FILENO);
    body();
    ::sleep(60);
    ::_exit(1);
  }
  ::close(pipe_ends[1]);
  End end;
  char buffer[1000];
  for (ssize_t bytes; (bytes = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    end.said.append(buffer, static_cast<std::size_t>(bytes));
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  end.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return end;
}

}  // namespace bertrand::testing
