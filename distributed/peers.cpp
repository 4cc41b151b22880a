#include "distributed/peers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

#include "io/machine.h"

namespace bertrand::distributed {
namespace {

/// When the living process of this number started; 0 if there is none, or only a zombie.
unsigned long long started_at(int pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state, skipped;
  fields >> state;
  for (int i = 4; i < 22; ++i) fields >> skipped;  // starttime is field 22 of proc(5)
  unsigned long long ticks = 0;
  fields >> ticks;
  return state == "Z" || state == "X" ? 0 : ticks;
}

}  // namespace

PeerFacts PeerFacts::own() {
  PeerFacts facts{.pid = ::getpid(), .start_time = started_at(::getpid())};
  io::host_name().copy(facts.host, sizeof facts.host - 1);
  ::sched_getaffinity(0, sizeof facts.cores, &facts.cores);
  return facts;
}

Peers::Peers(std::vector<PeerFacts> facts, int self) : facts_(std::move(facts)), self_(self) {
  for (int rank = 0; rank < static_cast<int>(facts_.size()); ++rank) {
    const PeerFacts& peer = facts_[static_cast<std::size_t>(rank)];
    if (rank != self && started_at(peer.pid) == peer.start_time) visible_.push_back(rank);
  }
}

std::string Peers::name(int rank) const {
  const PeerFacts& peer = facts_[static_cast<std::size_t>(rank)];
  return fmt::format("process {} (host {}, pid {})", rank, peer.host, peer.pid);
}

bool Peers::on_one_host() const {
  const char* const own = facts_[static_cast<std::size_t>(self_)].host;
  return visible_.size() + 1 == facts_.size() &&
         std::ranges::all_of(facts_, [&](const PeerFacts& peer) { return std::strcmp(peer.host, own) == 0; });
}

int Peers::on_own_cores() const {
  const cpu_set_t& own = facts_[static_cast<std::size_t>(self_)].cores;
  return static_cast<int>(std::ranges::count_if(
      visible_, [&](int rank) { return CPU_EQUAL(&facts_[static_cast<std::size_t>(rank)].cores, &own); }));
}

int Peers::first_dead() const {
  for (const int rank : visible_) {
    const PeerFacts& peer = facts_[static_cast<std::size_t>(rank)];
    if (started_at(peer.pid) != peer.start_time) return rank;
  }
  return -1;
}

}  // namespace bertrand::distributed
