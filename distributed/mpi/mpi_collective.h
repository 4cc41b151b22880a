// The collective of processes, over MPI. No call blocks: every wait looks at the clock, at the other processes and at
// their messages, so that no failure of another process leaves this one waiting for ever. If MPI itself does not
// return, also while it starts or ends, a watchdog ends the process. Processes of one host add in memory that they
// share.
#pragma once
#include <mpi.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/collective.h"
#include "distributed/host_sum.h"
#include "distributed/peers.h"
#include "distributed/watchdog.h"

namespace bertrand::distributed {

class MpiCollective : public Collective {
 public:
  /// Joins the other processes. A call waits `timeout` seconds for them.
  explicit MpiCollective(double timeout);
  /// Ends MPI if the last call of all processes was a barrier. Otherwise tells the others that this one leaves.
  ~MpiCollective() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) override;
  void broadcast(const Tensor& x, int root) override;
  void barrier() override;
  using Collective::abort;
  void abort(const std::string& reason, double waited) override;
  void interrupt() override { interrupted_ = true; }
  std::string failure_of_others() override;
  int processes_on_this_host() const override { return peers_.visible() + 1; }
  int processes_on_these_cores() const override { return peers_.on_own_cores() + 1; }
  std::size_t bytes_of_sums(DType dtype, std::size_t addends_of_others) const override;
  std::string way_of_sums() const override;
  void set_standing(const std::string& before, const std::string& after) override {
    watchdog_.set_standing(before, after);
  }

 private:
  static constexpr std::size_t kMostNodes = 64;
  static constexpr double kTelling = 2;  // seconds beyond the timeout, to tell the others of a failure

  /// At the beginning of a call every process sends this to all others.
  struct Header {
    char call[32] = {};
    std::uint64_t number = 0;  ///< of the call
    std::int64_t elements = 0, parts = 0;
    DType dtype = DType::f32;
    std::int32_t nodes = 0;
    struct Node {
      std::int64_t first = 0, count = 0;
    } node[kMostNodes];
  };
  /// Why a process leaves. It sends this to all others at any time.
  struct Farewell {
    char reason[400] = {};
    bool interrupted = false;  ///< somebody asked it to stop
  };
  static Header header(const char* call, const Tensor& x, std::int64_t parts = 0);

  /// Returns when all processes have come with this call. Throws if one fails, dies, stays away or makes another call.
  void meet(const Header& mine);
  void check_equal_calls() const;
  /// Messages under way, each with the process that it is exchanged with.
  struct Messages {
    std::vector<MPI_Request> requests;
    std::vector<int> ranks;
    MPI_Request* add(int rank);
    /// The processes of the messages that have not arrived yet.
    std::vector<int> open_ranks() const;
  };
  enum class Moved { nothing, something, all };
  struct Look {
    Moved moved = Moved::nothing;  ///< since the look before
    std::string error = {};        ///< of MPI, or ""
  };
  /// Returns when `look` says that all has come. Throws if it finds an error, or if nothing moves for as long as the
  /// timeout; `open` says for which processes it waits.
  void wait(const std::function<Look()>& look, const std::function<std::vector<int>()>& open);
  /// Returns when all messages have arrived.
  void wait(Messages& messages);
  /// Returns when no process is behind.
  void wait_for_behind(const HostSum::Behind& behind);
  /// Why a wait must end early, and which processes are to blame.
  struct Trouble {
    std::string reason = {};  ///< "" if there is none
    std::vector<int> absent = {};
    bool interrupted = false;  ///< nothing is wrong but that somebody asked to stop
  };
  Trouble trouble(double waited, const std::vector<int>& open);
  /// Whether the farewell of another process has come.
  bool has_left(int rank);
  /// The reason of a process that has left, with its name.
  Trouble farewell_of_others();
  /// Tells the others and throws. `waited`: for how many seconds this process has waited.
  [[noreturn]] void give_up(const Trouble& trouble, double waited);
  /// Returns when all but those absent have received the reason, or when the timeout is over, of which `waited` seconds
  /// are. The watchdog goes on: the caller lets it rest or ends it.
  void tell(const Trouble& trouble, double waited);

  /// Makes host_sum_ if all processes share the memory of one host and all can reach it; else says why not.
  void share_memory();
  /// The addends of all processes by rank; only those of this one have values.
  std::vector<std::vector<Addend>> addends_of_all(std::span<const Addend> mine) const;
  /// In messages, each process its slice of each block.
  void sum_by_messages(std::span<const Addend> mine, const Tensor& out);
  /// The elements [begin, end), of which each process adds up a slice.
  struct Block {
    Dim begin = 0, end = 0;
    std::vector<Addend> all;  ///< all addends of this process's slice, in order; those of other processes are copies
    Messages messages;        ///< fill these copies and those of the other processes
  };
  Block exchange_addends(std::span<const Addend> mine, const Tensor& out, Dim begin, std::span<const Tensor> copies);
  /// Room for the slices of the others' addends.
  std::vector<Tensor> copies(const Tensor& out) const;
  /// Puts the sum of this process's slice into `out`.
  void add_up(const Block& block, const Tensor& out);
  /// Sends this sum to all others, and receives theirs.
  void exchange_sums(const Block& block, const Tensor& out, Messages& messages);
  /// Sends x to all others, or receives it from `root`.
  void share(const Tensor& x, int root, Messages& messages);
  void receive(const Tensor& x, int from, int tag, Messages& messages);
  void send(const Tensor& x, int to, int tag, Messages& messages);

  int rank_ = 0, size_ = 1;
  const double timeout_;
  const std::unique_ptr<Backend> backend_;  // its own: sums are made while replicas compute on theirs
  MPI_Comm communicator_ = MPI_COMM_NULL;
  Peers peers_;
  std::unique_ptr<HostSum> host_sum_;
  std::string why_messages_;  // if it is null
  Watchdog watchdog_{"MPI"};
  Header mine_;
  std::vector<Header> theirs_;           // by rank
  std::vector<Farewell> farewells_;      // by rank; at rank_ the one that this process sends
  std::vector<MPI_Request> departures_;  // by rank: they receive the farewells; null for this process
  std::uint64_t calls_ = 0;
  bool told_ = false;     // the others know that this process leaves
  bool orderly_ = false;  // the last call was a barrier
  bool interrupted_ = false;
  std::atomic<bool> aborted_{false};
  std::mutex mutex_;
  std::string reason_;  // of the abort
  double waited_ = 0;   // before it
};

}  // namespace bertrand::distributed
