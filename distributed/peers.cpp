#include "distributed/peers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>

#include "io/descriptor.h"
#include "io/machine.h"

namespace bertrand::distributed {
namespace {

/// When the living process of this number started; 0 if there is none, or only a zombie; none if that cannot be told,
/// as while no further file may be opened.
std::optional<unsigned long long> started_at(int pid) {
  const io::Descriptor file(::open(fmt::format("/proc/{}/stat", pid).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(1024, '\0');  // it has at most 52 numbers and a name of 64 bytes
  const ssize_t size = file ? io::read_at(file.number(), text.data(), text.size(), 0) : -1;
  if (size < 0) return errno == ENOENT || errno == ESRCH ? std::optional(0ULL) : std::nullopt;
  text.resize(static_cast<std::size_t>(size));
  std::istringstream fields(text.substr(text.rfind(')') + 1));  // the name may hold anything
  std::string state, skipped;
  fields >> state;
  for (int i = 4; i < 22; ++i) fields >> skipped;  // starttime is field 22 of proc(5)
  unsigned long long ticks = 0;
  fields >> ticks;
  if (!fields) return std::nullopt;
  return state == "Z" || state == "X" ? 0 : ticks;
}

}  // namespace

PeerFacts PeerFacts::own() {
  PeerFacts facts{.pid = ::getpid(), .start_time = started_at(::getpid()).value_or(0)};
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
    if (const auto started = started_at(peer.pid); started && *started != peer.start_time) return rank;
  }
  return -1;
}

}  // namespace bertrand::distributed
