#include "distributed/mpi/mpi_collective.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "distributed/mpi/mpi_call.h"
#include "distributed/running_time.h"
#include "tensor/backends.h"

namespace bertrand::distributed {
namespace {

// "no" in this variable of the environment: add as over hosts. For tests, and to compare.
constexpr const char* kSwitch = "BERTRAND_SHARED_MEMORY";
constexpr int kHeaderTag = 1, kFarewellTag = 5;  // those between are in mpi_sum.cpp
// Seconds.
constexpr double kSpin = 50e-6;  // a message within a host takes less
constexpr double kLook = 0.1;    // between looks at the clock and the other processes
constexpr double kPatience = 1;  // beyond the timeout if several are absent: one of them may know which has failed

void sleep_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

/// Why `attempt` failed, or "".
std::string failure_of(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

/// Into zeros, the last of which stays.
void copy_text(char* to, std::size_t size, const std::string& text) { text.copy(to, size - 1); }

}  // namespace

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

void check_mpi(int code, const char* call) {
  if (code != MPI_SUCCESS) fail(Failure::distributed, "{}: {}", call, text_of(code));
}

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
  share_memory();
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

void MpiCollective::share_memory() {
  // What a process tells the others; the first reason of any counts for all, so that all add in the same way.
  struct Answer {
    char reason[400] = {};
    SharedMemory::Place place;
  };
  std::unique_ptr<SharedMemory> memory;
  const auto agree = [&](const std::string& reason) {
    Answer mine;
    copy_text(mine.reason, sizeof mine.reason, reason);
    if (memory) mine.place = memory->place();
    std::vector<Answer> all(static_cast<std::size_t>(size_));
    check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, communicator_),
              "MPI_Allgather");
    for (const Answer& answer : all)
      if (why_messages_.empty()) why_messages_ = answer.reason;
    return all[0].place;
  };
  const auto make = [&]() -> std::string {
    if (!peers_.on_one_host()) return "they do not see each other as on one host";
    const char* const wanted = std::getenv(kSwitch);
    if (wanted && std::string_view(wanted) == "no") return fmt::format("{}={}", kSwitch, wanted);
    if (rank_ > 0) return "";
    return failure_of([&] { memory = std::make_unique<SharedMemory>(HostSum::bytes(size_)); });
  };
  const SharedMemory::Place place = agree(make());
  if (!why_messages_.empty()) return;
  agree(rank_ == 0 ? "" : failure_of([&] { memory = std::make_unique<SharedMemory>(place); }));
  if (why_messages_.empty()) host_sum_ = std::make_unique<HostSum>(std::move(memory), rank_, size_, *backend_);
}

MpiCollective::~MpiCollective() {
  // At the first exit code that is not 0 the launcher sends SIGTERM to the other processes. Those end anyway.
  std::signal(SIGTERM, SIG_IGN);
  if (told_) return;
  if (!orderly_ || aborted_) {
    tell({.reason = aborted_ ? reason_ : "it ended before the others", .interrupted = !aborted_ && interrupted_},
         waited_);
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

MpiCollective::Header MpiCollective::header(const char* call, const Tensor& x, std::int64_t parts) {
  Header header{.elements = x.elements(), .parts = parts, .dtype = x.dtype()};
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

void MpiCollective::tell(const Trouble& trouble, double waited) {
  told_ = true;
  std::signal(SIGTERM, SIG_IGN);  // as in the destructor
  const double all = std::max(timeout_ + kTelling - waited, 0.0);
  watchdog_.set_call(trouble.reason);
  watchdog_.expect(all + kTelling);
  Farewell& farewell = farewells_[static_cast<std::size_t>(rank_)];
  copy_text(farewell.reason, sizeof farewell.reason, trouble.reason);
  farewell.interrupted = trouble.interrupted;
  std::vector<int> to;
  for (int rank = 0; rank < size_; ++rank)
    if (rank != rank_ && !has_left(rank) && std::ranges::count(trouble.absent, rank) == 0) to.push_back(rank);
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
}

void MpiCollective::give_up(const Trouble& trouble, double waited) {
  Trouble told = trouble;
  if (!trouble.interrupted) told.reason = fmt::format("{} (call {}): {}", mine_.call, calls_, trouble.reason);
  tell(told, waited);
  throw Error(trouble.interrupted ? Failure::interrupted : Failure::distributed, told.reason);
}

std::string MpiCollective::failure_of_others() {
  const Watchdog::Watch watch(watchdog_, timeout_ + kTelling);
  if (std::string farewell = farewell_of_others().reason; !farewell.empty()) return farewell;
  const int dead = peers_.first_dead();
  return dead < 0 ? "" : peers_.name(dead) + " has died";
}

bool MpiCollective::has_left(int rank) {
  int here = 0;
  if (rank != rank_) MPI_Test(&departures_[static_cast<std::size_t>(rank)], &here, MPI_STATUS_IGNORE);
  return here;
}

MpiCollective::Trouble MpiCollective::farewell_of_others() {
  for (int rank = 0; rank < size_; ++rank) {
    if (!has_left(rank)) continue;
    const Farewell& farewell = farewells_[static_cast<std::size_t>(rank)];
    if (farewell.interrupted)
      return {.reason = peers_.name(rank) + " was interrupted; hint: run the command again", .interrupted = true};
    return {fmt::format("{} has failed: {}", peers_.name(rank), farewell.reason)};
  }
  return {};
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

MpiCollective::Trouble MpiCollective::trouble(double waited, const std::vector<int>& open) {
  if (aborted_) {
    const std::lock_guard lock(mutex_);
    return {reason_, {}};
  }
  if (Trouble farewell = farewell_of_others(); !farewell.reason.empty()) return farewell;
  if (const int dead = peers_.first_dead(); dead >= 0) return {peers_.name(dead) + " has died", {dead}};
  if (waited < timeout_ + (open.size() > 1 ? kPatience : 0)) return {};
  std::string names;
  for (const int rank : open) names += (names.empty() ? "" : ", ") + peers_.name(rank);
  return {fmt::format("{} did not come within {} seconds", names, timeout_), open};
}

void MpiCollective::wait(const std::function<Look()>& look, const std::function<std::vector<int>()>& open) {
  RunningTime since_moved;
  double looked = 0;      // for how many seconds nothing had moved at the last look
  bool troubled = false;  // whether that look found trouble
  while (true) {
    watchdog_.expect(std::max(kTelling, timeout_ + kTelling - since_moved.seconds()));
    const auto [moved, error] = look();
    if (!error.empty()) give_up({error, {}}, since_moved.seconds());
    if (moved == Moved::all) break;
    if (moved == Moved::something) {
      since_moved.restart();
      looked = 0;
      troubled = false;
    }
    const double waited = since_moved.seconds();
    if (waited < kSpin) {
      std::this_thread::yield();  // the other may wait for this core
      continue;
    }
    sleep_for(waited < 100 * kSpin ? kSpin / 2 : 10 * kSpin);
    if (waited - looked < kLook) continue;
    looked = waited;
    // The first look does not count: what a process sent before it went may still be on its way.
    const Trouble found = trouble(waited, open());
    if (troubled && !found.reason.empty()) give_up(found, waited);
    troubled = !found.reason.empty();
  }
}

void MpiCollective::wait(Messages& messages) {
  std::vector<int> indices(messages.requests.size());
  const auto look = [&] {
    int done = 0;  // those that are become MPI_REQUEST_NULL
    const int code = MPI_Testsome(static_cast<int>(messages.requests.size()), messages.requests.data(), &done,
                                  indices.data(), MPI_STATUSES_IGNORE);
    if (code != MPI_SUCCESS) return Look{.error = text_of(code)};
    return Look{done == MPI_UNDEFINED ? Moved::all : done > 0 ? Moved::something : Moved::nothing};
  };
  wait(look, [&] { return messages.open_ranks(); });
}

void MpiCollective::wait_for_behind(const HostSum::Behind& behind) {
  std::vector<int> ranks = behind();
  const auto look = [&] {
    const std::size_t before = std::exchange(ranks, behind()).size();
    return Look{ranks.empty() ? Moved::all : ranks.size() < before ? Moved::something : Moved::nothing};
  };
  wait(look, [&] { return ranks; });
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

void MpiCollective::barrier() {
  const Watchdog::Watch watch(watchdog_, timeout_ + kTelling);
  meet(header("barrier", {}));
  orderly_ = true;
}

}  // namespace bertrand::distributed

extern "C" __attribute__((visibility("default"))) bertrand::distributed::Collective* bertrand_join_mpi(double timeout) {
  return new bertrand::distributed::MpiCollective(timeout);
}
