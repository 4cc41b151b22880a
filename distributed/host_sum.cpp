#include "distributed/host_sum.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

#include "distributed/collective.h"
#include "distributed/share.h"
#include "tensor/run.h"

namespace bertrand::distributed {
namespace {

/// Blocks that the memory has room for. With four nobody overwrites what another still reads, and none needs to ask:
/// who puts block i has taken block i − 3, so all have added it. Who adds block i has taken block i − 2, so all have
/// added that one, and before it taken block i − 4.
constexpr std::uint64_t kBlocks = 4;
/// Elements of a block, if there is room: 3 blocks of f32 stay in a cache of 1 MB. Smaller ones only wait more often.
constexpr Dim kMostElements = Dim{1} << 16;
constexpr std::size_t kLine = 64;                           // bytes: no two processes write into one
constexpr std::size_t kWorthTiming = std::size_t{1} << 20;  // bytes of a sum

static_assert(std::atomic_ref<std::uint64_t>::is_always_lock_free);  // else it would lock within one process only

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr std::size_t rounded(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

/// Tensors in the shared memory: each lies behind the one before, and at the beginning when all are gone. So those of
/// all processes lie at the same places.
class HostSum::Room final : public Backend {
 public:
  explicit Room(std::span<std::byte> memory) : memory_(memory) {}
  Device device() const override { return {}; }
  std::string description() const override { return "memory that processes share"; }
  std::byte* allocate(std::size_t bytes) override {
    check(rounded(bytes) <= available_memory(), "shared memory: expected at most {} bytes, got {}", available_memory(),
          bytes);
    ++tensors_;
    return memory_.data() + std::exchange(used_, used_ + rounded(bytes));
  }
  void deallocate(std::byte*, std::size_t) override {
    if (--tensors_ == 0) used_ = 0;
  }
  MemoryUse memory() const override { return {.in_use = used_, .peak = used_}; }
  std::size_t available_memory() const override { return memory_.size() - used_; }
  void synchronize() override {}
  void upload(const void* host, const Tensor& out) override { std::memcpy(out.data(), host, out.bytes()); }
  void download(const Tensor& x, void* host) override { std::memcpy(host, x.data(), x.bytes()); }
  std::function<void(void* host)> download_later(const Tensor& x) override {
    return [this, x](void* host) { download(x, host); };
  }
  Kernels* kernels() override { return nullptr; }

 private:
  const std::span<std::byte> memory_;
  std::size_t used_ = 0;
  int tensors_ = 0;
};

/// One sum.
class HostSum::Call {
 public:
  /// How many blocks a process has done with, in all calls together. The memory has one of each process at its
  /// beginning.
  struct alignas(kLine) Progress {
    std::uint64_t put, added;
  };
  using Part = std::uint64_t Progress::*;

  /// What of the memory is behind these.
  static std::span<std::byte> room_in(const SharedMemory& memory, int size) {
    check(memory.bytes().size() >= bytes(size), "shared memory: expected {} bytes for {} processes, got {}",
          bytes(size), size, memory.bytes().size());
    return memory.bytes().subspan(static_cast<std::size_t>(size) * sizeof(Progress));
  }

  Call(HostSum& host, const std::vector<std::vector<Addend>>& addends, std::int64_t parts, const Tensor& out,
       const Wait& wait)
      : host_(host),
        progress_(reinterpret_cast<Progress*>(host.memory_->bytes().data())),
        addends_(addends),
        parts_(parts),
        out_(out),
        wait_(wait),
        past_caches_(host.past_caches_.next() == 1) {  // for speed alone
    std::size_t tensors = 1;                           // of a block: the sum, and all addends
    for (const auto& of_process : addends) tensors += of_process.size();
    const std::size_t room = host.room_->available_memory() / (kBlocks * tensors) / kLine * kLine;
    elements_ =
        std::min({kMostElements, static_cast<Dim>(room / size_of(out.dtype())) / kVectorElements * kVectorElements,
                  std::max(out.elements(), Dim{1})});
    for (Block& block : blocks_) {
      const auto tensor = [&] { return Tensor(Shape{elements_}, out.dtype(), *host.room_); };
      block.sum = tensor();
      for (const auto& of_process : addends) {
        auto& copies = block.addends.emplace_back();
        for (std::size_t i = 0; i < of_process.size(); ++i) copies.push_back(tensor());
      }
    }
  }

  struct Work {
    std::uint64_t blocks;
    double seconds;  // without those that it waited for others
  };
  Work run() {
    const double begin = now();
    const auto count = static_cast<std::uint64_t>((out_.elements() + elements_ - 1) / elements_);
    for (std::uint64_t i = 0; i < count + 2; ++i) {
      if (i < count) put(i);
      if (i >= 1 && i - 1 < count) add(i - 1);
      if (i >= 2) take(i - 2);
    }
    return {count, now() - begin - waited_};  // the time is for speed alone: the way of the next sum
  }

 private:
  struct Block {
    Tensor sum;
    std::vector<std::vector<Tensor>> addends;  // by rank
  };
  Block& block(std::uint64_t i) { return blocks_[(host_.blocks_ + i) % kBlocks]; }
  Dim begin(std::uint64_t i) const { return static_cast<Dim>(i) * elements_; }
  Dim length(std::uint64_t i) const { return std::min(elements_, out_.elements() - begin(i)); }
  Share slice(std::uint64_t i) const { return share_of_elements(length(i), host_.rank_, host_.size_); }
  void copy(const Tensor& from, const Tensor& to) const {
    bertrand::run(host_.backend_, [&](Kernels& k) { k.cast(from, to); });
  }
  void copy_for_others(const Tensor& from, const Tensor& to) const {
    if (!past_caches_) return copy(from, to);  // for speed alone
    bertrand::run(host_.backend_, [&](Kernels& k) { k.copy_past_caches(from, to); });
  }
  /// f(first, count) for the elements of a block before and after the slice of this process.
  template <class F>
  void for_slices_of_others(std::uint64_t i, const F& f) const {
    const Share mine = slice(i);
    f(0, mine.first);
    f(mine.end(), length(i) - mine.end());
  }

  /// Returns when every process has done with so many blocks of this call.
  void wait_for(Part part, std::uint64_t blocks) {
    const double begin = now();
    wait_([this, part, least = host_.blocks_ + blocks] {
      std::vector<int> ranks;
      for (int rank = 0; rank < host_.size_; ++rank)
        if (std::atomic_ref(progress_[rank].*part).load(std::memory_order_acquire) < least) ranks.push_back(rank);
      return ranks;
    });
    waited_ += now() - begin;  // for speed alone, as run() says
  }
  void done(Part part) {
    std::uint64_t& mine = progress_[host_.rank_].*part;
    std::atomic_ref(mine).store(mine + 1, std::memory_order_release);
  }

  void put(std::uint64_t i) {
    const auto rank = static_cast<std::size_t>(host_.rank_);
    for (std::size_t a = 0; a < addends_[rank].size(); ++a)
      for_slices_of_others(i, [&](Dim first, Dim count) {
        copy_for_others(addends_[rank][a].values.window(begin(i) + first, {count}),
                        block(i).addends[rank][a].window(first, {count}));
      });
    done(&Progress::put);
  }

  void add(std::uint64_t i) {
    wait_for(&Progress::put, i + 1);
    const Share mine = slice(i);
    std::vector<Addend> all;
    for (std::size_t rank = 0; rank < addends_.size(); ++rank)
      for (std::size_t a = 0; a < addends_[rank].size(); ++a) {
        Addend addend = addends_[rank][a];
        addend.values = rank == static_cast<std::size_t>(host_.rank_)
                            ? addend.values.window(begin(i) + mine.first, {mine.count})
                            : block(i).addends[rank][a].window(mine.first, {mine.count});
        all.push_back(std::move(addend));
      }
    const auto sum = add_siblings(
        all, parts_, [&](const Tensor& left, const Tensor& right) { add_to_right(host_.backend_, left, right); });
    check(sum.size() == 1 && sum[0].count == parts_, "all_reduce_sum: the addends do not cover {} parts", parts_);
    copy_for_others(sum[0].values, block(i).sum.window(mine.first, {mine.count}));
    const Tensor own = out_.window(begin(i) + mine.first, {mine.count});
    if (!sum[0].values.same_memory(own)) copy(sum[0].values, own);
    done(&Progress::added);
  }

  void take(std::uint64_t i) {
    wait_for(&Progress::added, i + 1);
    for_slices_of_others(i, [&](Dim first, Dim count) {
      copy(block(i).sum.window(first, {count}), out_.window(begin(i) + first, {count}));
    });
  }

  HostSum& host_;
  Progress* const progress_;  // by rank
  const std::vector<std::vector<Addend>>& addends_;
  const std::int64_t parts_;
  const Tensor& out_;
  const Wait& wait_;
  const bool past_caches_;
  double waited_ = 0;  // seconds
  Dim elements_ = 0;   // of a block
  Block blocks_[kBlocks];
};

HostSum::HostSum(std::unique_ptr<SharedMemory> memory, int rank, int size, Backend& backend)
    : memory_(std::move(memory)),
      rank_(rank),
      size_(size),
      backend_(backend),
      room_(std::make_unique<Room>(Call::room_in(*memory_, size))) {}

HostSum::~HostSum() = default;

void HostSum::sum(const std::vector<std::vector<Addend>>& addends, std::int64_t parts, const Tensor& out,
                  const Wait& wait) {
  check(!broken_, "shared memory: expected no sum after one that failed, got another");
  broken_ = true;
  const auto [blocks, seconds] = Call(*this, addends, parts, out, wait).run();
  blocks_ += blocks;
  // Which way the next sum takes is for speed alone.
  if (out.bytes() >= kWorthTiming) past_caches_.took(seconds / static_cast<double>(out.bytes()));
  broken_ = false;
}

}  // namespace bertrand::distributed
