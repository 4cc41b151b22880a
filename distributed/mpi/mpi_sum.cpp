// How MpiCollective adds up and shares values.
#include <algorithm>
#include <deque>
#include <utility>

#include "distributed/mpi/mpi_call.h"
#include "distributed/mpi/mpi_collective.h"
#include "io/units.h"
#include "tensor/run.h"

namespace bertrand::distributed {
namespace {

constexpr int kAddendTag = 2, kSumTag = 3, kBroadcastTag = 4;
// Elements that a process adds up at a time: few enough for a cache. kAhead times as many travel meanwhile: so many
// that a network never waits until MPI has agreed on the next message.
constexpr Dim kSlice = Dim{1} << 16;
constexpr std::size_t kAhead = 8;
// Elements of a broadcast that travel at a time. Two such pieces are under way at once: 2 MB, as of a sum. Each arrival
// shows that a slow network moves. If a piece takes longer than the timeout, the network counts as cut.
constexpr Dim kBroadcast = Dim{1} << 18;
/// The slice of block [begin, end) that process `rank` adds up.
Share slice_of(Dim begin, Dim end, int rank, int size) {
  const Share share = share_of_elements(end - begin, rank, size);
  return {.first = begin + share.first, .count = share.count};
}

}  // namespace

void MpiCollective::all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) {
  const std::vector<Addend> nodes =
      add_siblings(mine, parts, [&](const Tensor& left, const Tensor& right) { add_to_right(*backend_, left, right); });
  Header header = MpiCollective::header("all_reduce_sum", out, parts);
  check(nodes.size() <= kMostNodes, "all_reduce_sum: expected at most {} addends of one process, got {}", kMostNodes,
        nodes.size());
  header.nodes = static_cast<std::int32_t>(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) header.node[i] = {nodes[i].first, nodes[i].count};
  const Watchdog::Watch watch(watchdog_, timeout_ + kTelling);
  meet(header);
  if (!host_sum_) return sum_by_messages(nodes, out);
  host_sum_->sum(addends_of_all(nodes), parts, out, [&](const HostSum::Behind& behind) { wait_for_behind(behind); });
}

std::vector<std::vector<Addend>> MpiCollective::addends_of_all(std::span<const Addend> mine) const {
  std::vector<std::vector<Addend>> all(theirs_.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    for (std::int32_t i = 0; i < theirs_[rank].nodes; ++i)
      all[rank].push_back({.first = theirs_[rank].node[i].first, .count = theirs_[rank].node[i].count, .values = {}});
  all[static_cast<std::size_t>(rank_)].assign(mine.begin(), mine.end());
  return all;
}

void MpiCollective::sum_by_messages(std::span<const Addend> mine, const Tensor& out) {
  // While one block is added up, the addends of the blocks after it and the sums of those before it travel.
  std::vector<std::vector<Tensor>> room;
  std::deque<Block> under_way;
  Messages sums;
  for (Dim next = 0; next < out.elements() || !under_way.empty();) {
    for (; next < out.elements() && under_way.size() < kAhead; next = under_way.back().end) {
      if (room.size() < kAhead) room.push_back(copies(out));
      under_way.push_back(
          exchange_addends(mine, out, next, room[static_cast<std::size_t>(next / (kSlice * size_)) % kAhead]));
    }
    Block block = std::move(under_way.front());
    under_way.pop_front();
    wait(block.messages);
    add_up(block, out);
    exchange_sums(block, out, sums);
  }
  wait(sums);
}

std::size_t MpiCollective::bytes_of_sums(DType dtype, std::size_t addends_of_others) const {
  if (host_sum_) return HostSum::bytes(size_);
  return addends_of_others * kAhead * static_cast<std::size_t>(kSlice + kVectorElements) * size_of(dtype);
}

std::string MpiCollective::way_of_sums() const {
  if (!host_sum_) return fmt::format("of {} processes in messages: {}", size_, why_messages_);
  return fmt::format("of {} processes in {} of memory that they share", size_,
                     io::bytes_text(static_cast<double>(HostSum::bytes(size_))));
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

}  // namespace bertrand::distributed
