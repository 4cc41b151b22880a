#include "io/signals.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <initializer_list>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "io/error.h"
#include "io/files.h"
#include "support/program.h"

using namespace bertrand::io;

namespace {

/// The exit code of a process that does `body`.
template <class Body>
int exit_code(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace

TEST_CASE("the first signal only asks to stop") {
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1})
    CHECK(exit_code([&] {
            catch_stop_signals();
            if (stop_requested()) return 1;
            std::raise(signal);
            return stop_requested() ? 75 : 2;
          }) == 75);
}

TEST_CASE("the second signal ends the process at once, saying which it was") {
  for (const int second : {SIGTERM, SIGINT})
    CHECK(exit_code([&] {
            catch_stop_signals();
            std::raise(SIGTERM);
            std::this_thread::sleep_for(kSameRequest + std::chrono::milliseconds(50));
            std::raise(second);
            return 1;
          }) == 128 + second);
}

TEST_CASE("a signal that is sent to a process and at once to its group is one") {
  CHECK(exit_code([] {
          catch_stop_signals();
          std::raise(SIGTERM);
          std::raise(SIGTERM);
          return stop_requested() ? 75 : 1;
        }) == 75);
}

TEST_CASE("a call that waits goes on after a signal that asks to stop") {
  CHECK(exit_code([] {
          catch_stop_signals();
          int ends[2];
          if (::pipe(ends) != 0) return 1;
          std::thread other([&, waiting = ::pthread_self()] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            ::pthread_kill(waiting, SIGTERM);
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            (void)!::write(ends[1], "r", 1);
          });
          char byte = 0;
          const ssize_t count = ::read(ends[0], &byte, 1);
          other.join();
          return count == 1 && stop_requested() ? 75 : 2;
        }) == 75);
}

TEST_CASE("work that nothing was saved of ends at the first signal, and training does not") {
  const auto work = [](OnStop on_stop) {
    catch_stop_signals(on_stop);
    leave_if_requested("planning");
    std::raise(SIGTERM);
    try {
      leave_if_requested("planning");
    } catch (const bertrand::Error& error) {
      return std::string(error.what()).starts_with("interrupted while planning: nothing was written") ? 75 : 1;
    }
    return 2;
  };
  CHECK(exit_code([&] { return work(OnStop::leave); }) == 75);
  CHECK(exit_code([&] { return work(OnStop::save); }) == 2);
}

TEST_CASE("work can be asked to leave without a signal, and the work after it is not asked") {
  {
    const LeaveRequest first;
    { const LeaveRequest second; }
    CHECK(leave_requested());
    CHECK_FALSE(stop_requested());
    CHECK_THROWS_AS(leave_if_requested("planning"), bertrand::Error);
  }
  CHECK_FALSE(leave_requested());
}

TEST_CASE("a pipe is waited for until somebody reads it or a signal asks to leave") {
  const support::TemporaryDirectory directory;
  const std::string pipe = directory / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto write = [&](bool asked_to_leave) {
    return exit_code([&] {
      catch_stop_signals(OnStop::leave);
      ::alarm(120);
      if (asked_to_leave) std::raise(SIGTERM);
      try {
        write_file(Files::system(), pipe, "red");
      } catch (const bertrand::Error& error) {
        return std::string(error.what()).starts_with("interrupted while waiting for a reader of " + pipe) ? 75 : 1;
      }
      return 0;
    });
  };
  CHECK(write(true) == 75);
  std::string got;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    got = support::read_text(pipe);
  });
  CHECK(write(false) == 0);
  ::close(::open(pipe.c_str(), O_RDWR | O_NONBLOCK));  // lets the reader go if nothing was written
  reader.join();
  CHECK(got == "red");
}

TEST_CASE("a hang-up asks to stop, unless it was ignored before as under nohup") {
  const auto stops = [](auto before) {
    return exit_code([&] {
      std::signal(SIGHUP, before);
      catch_stop_signals();
      std::raise(SIGHUP);
      return stop_requested() ? 75 : 0;
    });
  };
  CHECK(stops(SIG_DFL) == 75);
  CHECK(stops(SIG_IGN) == 0);
}
