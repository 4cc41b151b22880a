// What ends a process that a call of MPI keeps, seen from outside.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <csignal>

#include "distributed/end_of_process.h"
#include "distributed/watchdog.h"

using namespace bertrand::distributed;
using namespace bertrand::testing;

TEST_CASE("a process that a call keeps beyond its time ends with 8 and one line") {
  const End end = end_of([] {
    static Watchdog watchdog("MPI");
    watchdog.set_standing("step 3: ", "; last checkpoint: none");
    watchdog.set_call("barrier (call 7)");
    watchdog.expect(0.5);
  });
  CHECK(end.code == 8);
  CHECK(end.seconds > 0.4);
  CHECK(end.said == "error: step 3: barrier (call 7): MPI has not returned in time; last checkpoint: none\n");
}

TEST_CASE("a process that nobody hears ends with 8 too") {
  const End end = end_of([] {
    ::close(STDERR_FILENO);
    static Watchdog watchdog("MPI");
    watchdog.set_call("barrier (call 7)");
    watchdog.expect(0.2);
  });
  CHECK(end.code == 8);
}

TEST_CASE("a process that a call keeps while another is dead ends without waiting for its time") {
  const End end = end_of([] {
    // Both ends of a pipe: the child tells who it is, and lives until it is killed.
    int facts[2];
    (void)!::pipe(facts);
    const pid_t other = ::fork();
    if (other == 0) {
      const PeerFacts own = PeerFacts::own();
      (void)!::write(facts[1], &own, sizeof own);
      ::pause();
    }
    PeerFacts theirs;
    (void)!::read(facts[0], &theirs, sizeof theirs);
    static Watchdog watchdog("MPI");
    watchdog.set_peers(Peers({PeerFacts::own(), theirs}, 0));
    watchdog.set_call("broadcast (call 2)");
    watchdog.expect(600);
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
  });
  CHECK(end.code == 8);
  CHECK(end.said.starts_with("error: broadcast (call 2): process 1 (host "));
  CHECK(end.said.ends_with(") has died, and MPI does not return\n"));
  CHECK(end.seconds > 0.9);  // in which the call may still return
}

TEST_CASE("a process that comes back in time is left alone") {
  const End end = end_of([] {
    Watchdog watchdog("MPI");
    const auto begin = std::chrono::steady_clock::now();
    do {  // which may take seconds if other programs have the processor
      watchdog.expect(3);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    } while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(3500));
    watchdog.rest();
    std::this_thread::sleep_for(std::chrono::milliseconds(3500));
    ::_exit(0);
  });
  CHECK(end.code == 0);
  CHECK(end.said.empty());
}

TEST_CASE("a process that was stopped, and goes on, gets the time that it lost") {
  const End end = end_of([] {
    Watchdog watchdog("MPI");
    watchdog.expect(3);
    const pid_t watched = ::getpid(), other = ::fork();
    if (other == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      ::kill(watched, SIGSTOP);
      std::this_thread::sleep_for(std::chrono::seconds(4));
      ::kill(watched, SIGCONT);
      ::_exit(0);
    }
    ::waitpid(other, nullptr, 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // in which the watchdog looks
    ::_exit(0);
  });
  CHECK(end.code == 0);
  CHECK(end.seconds > 4);
}
