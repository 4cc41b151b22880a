// How the processes of a run see each other.
#include "distributed/peers.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "support/file_limit.h"

using namespace bertrand::distributed;

namespace {

/// Another process, which waits until it is killed.
struct Other {
  Other() {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    process = ::fork();
    if (process == 0) {
      const PeerFacts own = PeerFacts::own();
      (void)!::write(ends[1], &own, sizeof own);
      ::alarm(600);  // should nobody be left to kill it
      ::pause();
      ::_exit(0);
    }
    REQUIRE(process > 0);  // to kill −1 would be to kill all
    CHECK(::read(ends[0], &facts, sizeof facts) == sizeof facts);
    for (const int end : ends) ::close(end);
  }
  ~Other() {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  pid_t process = 0;
  PeerFacts facts;
};

}  // namespace

TEST_CASE("a process is seen to have died as soon as it ends, before anybody has asked how it did") {
  const Other other;
  const Peers peers({PeerFacts::own(), other.facts}, 0);
  CHECK(peers.visible() == 1);
  CHECK(peers.on_one_host());
  CHECK(peers.on_own_cores() == 1);
  CHECK(peers.first_dead() == -1);
  CHECK(peers.name(1) ==
        "process 1 (host " + std::string(other.facts.host) + ", pid " + std::to_string(other.process) + ")");
  ::kill(other.process, SIGKILL);
  siginfo_t ended{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(other.process), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(peers.first_dead() == 1);
}

TEST_CASE("a process of another host, or one that has gone, is not taken for one here that has its number") {
  const Other other;
  PeerFacts gone = other.facts, elsewhere = other.facts, bound = other.facts;
  ++gone.start_time;
  std::strcpy(elsewhere.host, "another");
  CPU_ZERO(&bound.cores);
  const Peers with_gone({gone, PeerFacts::own()}, 1);
  CHECK(with_gone.visible() == 0);
  CHECK_FALSE(with_gone.on_one_host());
  CHECK(with_gone.first_dead() == -1);
  CHECK_FALSE(Peers({elsewhere, PeerFacts::own()}, 1).on_one_host());
  CHECK(Peers({bound, other.facts, PeerFacts::own()}, 2).on_own_cores() == 1);
}

TEST_CASE("what a process tells of itself stays the same while it works, and its cores are its own") {
  const PeerFacts before = PeerFacts::own();
  const std::vector<char> more(std::size_t{16} << 20, 1);
  CHECK(PeerFacts::own().start_time == before.start_time);
  CHECK(before.pid == ::getpid());
  CHECK(before.host[sizeof before.host - 1] == '\0');
  REQUIRE(CPU_COUNT(&before.cores) > 0);  // there are none where a cpu_set_t is too small for the machine
  int first = 0;
  while (!CPU_ISSET(first, &before.cores)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const PeerFacts bound = PeerFacts::own();
  ::sched_setaffinity(0, sizeof before.cores, &before.cores);
  CHECK(CPU_EQUAL(&bound.cores, &one));
}

TEST_CASE("a process is not taken for dead while this one may open no further file to look") {
  const Other other;
  const Peers peers({PeerFacts::own(), other.facts}, 0);
  REQUIRE(peers.visible() == 1);
  const support::FileLimit none(0);
  CHECK(peers.first_dead() == -1);
}
