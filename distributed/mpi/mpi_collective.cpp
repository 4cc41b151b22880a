#include "distributed/mpi/mpi_collective.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

#include "distributed/running_time.h"
#include "tensor/backends.h"
#include "tensor/run.h"

namespace bertrand::distributed {
namespace {

constexpr int kHeaderTag = 1, kAddendTag = 2, kSumTag = 3, kBroadcastTag = 4, kFarewellTag = 5;
// Elements that a process adds up at a time: few enough for a cache. kAhead times as many travel meanwhile: so many
// that a network never waits until MPI has agreed on the next message.
constexpr Dim kSlice = Dim{1} << 16;
constexpr std::size_t kAhead = 8;
// Elements of a broadcast that travel at a time. Two such pieces are under way at once: 2 MB, as of a sum. Each arrival
// shows that a slow network moves. If a piece takes longer than the timeout, the network counts as cut.
constexpr Dim kBroadcast = Dim{1} << 18;
// Seconds.
constexpr double kSpin = 50e-6;  // a message within a host takes less
constexpr double kLook = 0.1;    // between looks at the clock and the other processes
constexpr double kTelling = 2;   // beyond the timeout, to tell the others of a failure
constexpr double kPatience = 1;  // beyond the timeout if several are absent: one of them may know which has failed

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) fail(Failure::distributed, "{}: {}", call, text_of(code));
}

/// The slice of block [begin, end) that process `rank` adds up.
Share slice_of(Dim begin, Dim end, int rank, int size) {
  const Share share = share_of_elements(end - begin, rank, size);
  return {.first = begin + share.first, .count = share.count};
}

/// Into zeros, the last of which stays.
void copy_text(char* to, std::size_t size, const std::string& text) { text.copy(to, size - 1); }

}  // namespace

MpiCollective::MpiCollective(double timeout) : timeout_(timeout), backend_(open_cpu({.threads = 1})) {
  std::signal(SIGPIPE, SIG_IGN);  // raised by writing to a process of another host that is gone
  watchdog_.set_call(fmt::format("mpi: expected all processes of the run to start within {} seconds", timeout_));
  watchdog_.expect(timeout_);
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
  const PeerFacts own = PeerFacts::own();
  std::vector<PeerFacts> facts(static_cast<std::size_t>(size_));
  check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, facts.data(), sizeof own, MPI_BYTE, communicator_),
            "MPI_Allgather");
  peers_ = Peers(std::move(facts), rank_);
  watchdog_.set_peers(peers_);
  watchdog_.rest();
  theirs_.resize(static_cast<std::size_t>(size_));
  farewells_.resize(theirs_.size());
  departures_.resize(theirs_.size(), MPI_REQUEST_NULL);
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_)
      check_mpi(MPI_Irecv(&farewells_[static_cast<std::size_t>(rank)], sizeof(Farewell), MPI_BYTE, rank, kFarewellTag,
                          communicator_, &departures_[static_cast<std::size_t>(rank)]),
                "MPI_Irecv");
  if (provided < MPI_THREAD_SERIALIZED)
    fail(Failure::usage,
         "mpi: expected a library that several threads may call in turn (MPI_THREAD_SERIALIZED, {}), got level {}; "
         "hint: "
         "use an MPI that is built with threads",
         static_cast<int>(MPI_THREAD_SERIALIZED), provided);
}

MpiCollective::~MpiCollective() {
  // At the first exit code that is not 0 the launcher sends SIGTERM to the other processes. Those end anyway.
  std::signal(SIGTERM, SIG_IGN);
  if (told_) return;
  if (!orderly_ || aborted_) {
    tell_failure(aborted_ ? reason_ : "it ended before the others", {}, waited_);
    return;
  }
  watchdog_.set_standing("", "");
  watchdog_.set_call("mpi: the run is complete and saved, but not all processes end");
  watchdog_.set_peers({});  // processes that end before this one have not failed
  watchdog_.expect(timeout_);
  for (MPI_Request& departure : departures_) {
    if (departure == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&departure);
    MPI_Request_free(&departure);
  }
  MPI_Finalize();
}

MpiCollective::Header MpiCollective::header(const char* call, const Tensor& x, std::int64_t parts) const {
  Header header{.number = calls_, .elements = x ? x.elements() : 0, .parts = parts};
  if (x) header.dtype = x.dtype();
  copy_text(header.call, sizeof header.call, call);
  return header;
}

void MpiCollective::abort(const std::string& reason, double waited) {
  const std::lock_guard lock(mutex_);
  if (aborted_) return;
  reason_ = reason;
  waited_ = waited;
  aborted_ = true;
}

void MpiCollective::tell_failure(const std::string& reason, const std::vector<int>& absent, double waited) {
  told_ = true;
  std::signal(SIGTERM, SIG_IGN);  // as in the destructor
  const double all = std::max(timeout_ + kTelling - waited, 0.0);
  watchdog_.set_call(reason);
  watchdog_.expect(all + kTelling);
  Farewell& farewell = farewells_[static_cast<std::size_t>(rank_)];
  copy_text(farewell.reason, sizeof farewell.reason, reason);
  std::vector<int> to;
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_ && !has_left(rank) && std::ranges::count(absent, rank) == 0) to.push_back(rank);
  std::vector<MPI_Request> tellings(to.size(), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < to.size(); ++i)
    MPI_Issend(&farewell, sizeof farewell, MPI_BYTE, to[i], kFarewellTag, communicator_, &tellings[i]);
  RunningTime since;
  for (bool all_know = to.empty(); !all_know;) {
    const double seconds = since.seconds();
    if (seconds > all || (seconds > 1 && peers_.first_dead() >= 0)) break;
    watchdog_.expect(all - seconds + kTelling);
    sleep_for(1e-3);
    all_know = true;
    for (std::size_t i = 0; i < to.size(); ++i) {
      int told = 0;
      MPI_Test(&tellings[i], &told, MPI_STATUS_IGNORE);
      all_know = all_know && (told || has_left(to[i]));
    }
  }
  watchdog_.rest();
}

void MpiCollective::give_up(const Trouble& trouble, double waited) {
  const std::string message = fmt::format("{} (call {}): {}", mine_.call, calls_, trouble.reason);
  tell_failure(message, trouble.absent, waited);
  throw Error(Failure::distributed, message);
}

std::string MpiCollective::failure_of_others() {
  const Watchdog::Watch watch(watchdog_, timeout_ + kTelling);
  if (std::string farewell = farewell_of_others(); !farewell.empty()) return farewell;
  const int dead = peers_.first_dead();
  return dead < 0 ? "" : peers_.name(dead) + " has died";
}

bool MpiCollective::has_left(int rank) {
  int here = 0;
  if (rank != rank_) MPI_Test(&departures_[static_cast<std::size_t>(rank)], &here, MPI_STATUS_IGNORE);
  return here;
}

std::string MpiCollective::farewell_of_others() {
  for (int rank = 0; rank < size_; ++rank)
    if (has_left(rank))
      return fmt::format("{} has failed: {}", peers_.name(rank), farewells_[static_cast<std::size_t>(rank)].reason);
  return "";
}

MPI_Request* MpiCollective::Messages::add(int rank) {
  ranks.push_back(rank);
  return &requests.emplace_back(MPI_REQUEST_NULL);
}

std::vector<int> MpiCollective::Messages::open_ranks() const {
  std::vector<int> open;
  for (std::size_t i = 0; i < requests.size(); ++i)
    if (requests[i] != MPI_REQUEST_NULL && std::ranges::count(open, ranks[i]) == 0) open.push_back(ranks[i]);
  return open;
}

MpiCollective::Trouble MpiCollective::trouble(double waited, const Messages& messages) {
  if (aborted_) {
    const std::lock_guard lock(mutex_);
    return {reason_, {}};
  }
  if (std::string farewell = farewell_of_others(); !farewell.empty()) return {std::move(farewell), {}};
  if (const int dead = peers_.first_dead(); dead >= 0) return {peers_.name(dead) + " has died", {dead}};
  const std::vector<int> absent = messages.open_ranks();
  if (waited < timeout_ + (absent.size() > 1 ? kPatience : 0)) return {};
  std::string names;
  for (const int rank : absent) names += (names.empty() ? "" : ", ") + peers_.name(rank);
  return {fmt::format("{} did not come within {} seconds", names, timeout_), absent};
}

void MpiCollective::wait(Messages& messages) {
  RunningTime since_moved;
  double looked = 0;      // for how many seconds nothing had moved at the last look
  bool troubled = false;  // whether that look found trouble
  std::vector<int> indices(messages.requests.size());
  watchdog_.expect(timeout_ + kTelling);
  while (true) {
    int done = 0;  // those that are become MPI_REQUEST_NULL
    const int code = MPI_Testsome(static_cast<int>(messages.requests.size()), messages.requests.data(), &done,
                                  indices.data(), MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) give_up({text_of(code), {}}, since_moved.seconds());
    if (done == MPI_UNDEFINED) break;
    if (done > 0) {
      since_moved.restart();
      looked = 0;
      troubled = false;
    }
    const double waited = since_moved.seconds();
    if (waited < kSpin) continue;
    sleep_for(waited < 100 * kSpin ? kSpin / 2 : 10 * kSpin);
    if (waited - looked < kLook) continue;
    looked = waited;
    watchdog_.expect(std::max(kTelling, timeout_ + kTelling - waited));
    // The first look does not count: what a process sent before it went may still be on its way.
    const Trouble found = trouble(waited, messages);
    if (troubled && !found.reason.empty()) give_up(found, waited);
    troubled = !found.reason.empty();
  }
}

void MpiCollective::meet(const Header& mine) {
  check(!told_, "mpi: this process has left the others");
  orderly_ = false;
  ++calls_;
  mine_ = mine;
  mine_.number = calls_;
  watchdog_.set_call(fmt::format("{} (call {})", mine_.call, calls_));
  Messages receives, sends;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    check_mpi(MPI_Irecv(&theirs_[static_cast<std::size_t>(rank)], sizeof(Header), MPI_BYTE, rank, kHeaderTag,
                        communicator_, receives.add(rank)),
              "MPI_Irecv");
    check_mpi(MPI_Isend(&mine_, sizeof mine_, MPI_BYTE, rank, kHeaderTag, communicator_, sends.add(rank)), "MPI_Isend");
  }
  wait(receives);
  wait(sends);
  theirs_[static_cast<std::size_t>(rank_)] = mine_;
  check_equal_calls();
}

void MpiCollective::check_equal_calls() const {
  const auto text = [](const Header& h) {
    return fmt::format("call {}, {} of {} {} and {} parts", h.number, h.call, h.elements, name_of(h.dtype), h.parts);
  };
  for (int rank = 0; rank < size_; ++rank)
    check(text(theirs_[static_cast<std::size_t>(rank)]) == text(mine_),
          "mpi: expected the same call in all processes, but {} came with {} and {} with {}", peers_.name(rank),
          text(theirs_[static_cast<std::size_t>(rank)]), peers_.name(rank_), text(mine_));
}

void MpiCollective::all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) {
  const std::vector<Addend> nodes =
      add_siblings(mine, parts, [&](const Tensor& left, const Tensor& right) { add_to_right(*backend_, left, right); });
  Header header = this->header("all_reduce_sum", out, parts);
  check(nodes.size() <= kMostNodes, "all_reduce_sum: expected at most {} addends of one process, got {}", kMostNodes,
        nodes.size());
  header.nodes = static_cast<std::int32_t>(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) header.node[i] = {nodes[i].first, nodes[i].count};
  const Watchdog::Watch watch(watchdog_, timeout_ + kTelling);
  meet(header);
  // While one block is added up, the addends of the blocks after it and the sums of those before it travel.
  std::vector<std::vector<Tensor>> room;
  std::deque<Block> under_way;
  Messages sums;
  for (Dim next = 0; next < out.elements() || !under_way.empty();) {
    for (; next < out.elements() && under_way.size() < kAhead; next = under_way.back().end) {
      if (room.size() < kAhead) room.push_back(copies(out));
      under_way.push_back(
          exchange_addends(nodes, out, next, room[static_cast<std::size_t>(next / (kSlice * size_)) % kAhead]));
    }
    Block block = std::move(under_way.front());
    under_way.pop_front();
    wait(block.messages);
    add_up(block, out);
    exchange_sums(block, out, sums);
  }
  wait(sums);
}

std::size_t MpiCollective::bytes_of_addend(DType dtype) const {
  return kAhead * static_cast<std::size_t>(kSlice + kVectorElements) * size_of(dtype);
}

std::vector<Tensor> MpiCollective::copies(const Tensor& out) const {
  std::vector<Tensor> copies;
  for (int rank = 0; rank < size_; ++rank)
    for (std::int32_t i = 0; rank != rank_ && i < theirs_[static_cast<std::size_t>(rank)].nodes; ++i)
      copies.emplace_back(Shape{std::min(kSlice, out.elements()) + kVectorElements}, out.dtype(), *backend_);
  return copies;
}

MpiCollective::Block MpiCollective::exchange_addends(std::span<const Addend> mine, const Tensor& out, Dim begin,
                                                     std::span<const Tensor> copies) {
  Block block{.begin = begin, .end = std::min(out.elements(), begin + kSlice * size_), .all = {}, .messages = {}};
  const Share slice = slice_of(block.begin, block.end, rank_, size_);
  std::size_t copied = 0;
  for (int rank = 0; rank < size_; ++rank) {
    const Header& theirs = theirs_[static_cast<std::size_t>(rank)];
    for (std::int32_t i = 0; i < theirs.nodes; ++i) {
      Addend addend{.first = theirs.node[i].first, .count = theirs.node[i].count, .values = {}};
      if (rank == rank_) {
        addend.values = mine[static_cast<std::size_t>(i)].values.window(slice.first, {slice.count});
      } else {
        addend.values = copies[copied++].window(0, {slice.count});
        receive(addend.values, rank, kAddendTag, block.messages);
      }
      block.all.push_back(std::move(addend));
    }
    if (rank == rank_) continue;
    const Share other = slice_of(block.begin, block.end, rank, size_);
    for (const Addend& addend : mine)
      send(addend.values.window(other.first, {other.count}), rank, kAddendTag, block.messages);
  }
  return block;
}

void MpiCollective::add_up(const Block& block, const Tensor& out) {
  const auto sum = add_siblings(block.all, mine_.parts,
                                [&](const Tensor& left, const Tensor& right) { add_to_right(*backend_, left, right); });
  check(sum.size() == 1 && sum[0].count == mine_.parts, "all_reduce_sum: the addends do not cover {} parts",
        mine_.parts);
  const Share slice = slice_of(block.begin, block.end, rank_, size_);
  const Tensor own = out.window(slice.first, {slice.count});
  if (!own.same_memory(sum[0].values)) run(*backend_, [&](Kernels& k) { k.cast(sum[0].values, own); });
}

void MpiCollective::exchange_sums(const Block& block, const Tensor& out, Messages& messages) {
  const auto part = [&](int rank) {
    const Share slice = slice_of(block.begin, block.end, rank, size_);
    return out.window(slice.first, {slice.count});
  };
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    receive(part(rank), rank, kSumTag, messages);
    send(part(rank_), rank, kSumTag, messages);
  }
}

void MpiCollective::receive(const Tensor& x, int from, int tag, Messages& messages) {
  check_mpi(MPI_Irecv(x.data(), static_cast<int>(x.bytes()), MPI_BYTE, from, tag, communicator_, messages.add(from)),
            "MPI_Irecv");
}

void MpiCollective::send(const Tensor& x, int to, int tag, Messages& messages) {
  check_mpi(MPI_Isend(x.data(), static_cast<int>(x.bytes()), MPI_BYTE, to, tag, communicator_, messages.add(to)),
            "MPI_Isend");
}

void MpiCollective::share(const Tensor& x, int root, Messages& messages) {
  if (rank_ != root) return receive(x, root, kBroadcastTag, messages);
  for (int rank = 0; rank < size_; ++rank)
    if (rank != root) send(x, rank, kBroadcastTag, messages);
}

/// The root itself sends to each of the others, so that it knows which one does not receive. That is slow for many
/// processes, but a run broadcasts weights only once.
void MpiCollective::broadcast(const Tensor& x, int root) {
  const Watchdog::Watch watch(watchdog_, timeout_ + kTelling);
  meet(header("broadcast", x));
  Messages before;  // while one piece travels the next is offered
  for (Dim begin = 0; begin < x.elements(); begin += kBroadcast) {
    Messages piece;
    share(x.window(begin, {std::min(kBroadcast, x.elements() - begin)}), root, piece);
    wait(before);
    before = std::move(piece);
  }
  wait(before);
}

void MpiCollective::barrier() {
  const Watchdog::Watch watch(watchdog_, timeout_ + kTelling);
  meet(header("barrier", {}));
  orderly_ = true;
}

}  // namespace bertrand::distributed

extern "C" __attribute__((visibility("default"))) bertrand::distributed::Collective* bertrand_join_mpi(double timeout) {
  return new bertrand::distributed::MpiCollective(timeout);
}
