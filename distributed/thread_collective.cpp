#include "distributed/thread_collective.h"

#include <algorithm>

#include "tensor/backends.h"
#include "tensor/profiler.h"
#include "tensor/run.h"

namespace bertrand::distributed {
namespace {

/// Elements that a CPU adds up at a time: so few that the sum is still in the cache when it is copied to the others. A
/// GPU adds up its share at once, because each block costs launches.
constexpr Dim kBlock = Dim{1} << 16;

}  // namespace

void ThreadMeeting::come() {
  if (++present_ < size()) return;
  present_ = 0;
  ++meetings_;
  changed_.notify_all();
}

void ThreadMeeting::arrive() {
  std::unique_lock lock(mutex_);
  const std::uint64_t meeting = meetings_;
  if (aborted_.empty()) come();
  changed_.wait(lock, [&] { return meetings_ != meeting || !aborted_.empty(); });
  if (meetings_ == meeting) throw Error(Failure::distributed, aborted_);
}

void ThreadMeeting::come_together() {
  std::unique_lock lock(mutex_);
  const std::uint64_t meeting = meetings_;
  if (!failed_) come();
  changed_.wait(lock, [&] { return meetings_ != meeting || failed_; });
  if (meetings_ == meeting) std::rethrow_exception(failed_);
}

void ThreadMeeting::let_one(bool chosen, const std::function<void()>& work) {
  come_together();
  if (chosen) work();
  come_together();
}

void ThreadMeeting::fail(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (!failed_) failed_ = std::move(failure);
  if (aborted_.empty()) aborted_ = "a replica has failed";  // for later calls
  changed_.notify_all();
}

std::exception_ptr ThreadMeeting::depart() {
  std::unique_lock lock(mutex_);
  const std::uint64_t departures = departures_;
  if (++departed_ == size()) {
    departed_ = 0;
    ++departures_;
    changed_.notify_all();
  } else {
    changed_.wait(lock, [&] { return departures_ != departures; });
  }
  return failed_;
}

void ThreadMeeting::abort(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  if (aborted_.empty()) aborted_ = reason.empty() ? "a replica was stopped" : reason;
  changed_.notify_all();
}

std::string ThreadMeeting::aborted() const {
  const std::lock_guard lock(mutex_);
  return aborted_;
}

ThreadCollective::ThreadCollective(const Place& place, Backend& backend)
    : meeting_(place.meeting), thread_(place.thread), processes_(place.processes), backend_(backend) {
  if (!processes_) return;
  aside_ = open_cpu({.threads = 1});
  background_ = std::make_unique<Background>();
}

void ThreadCollective::together(const ThreadMeeting::Seat& mine, const std::function<void()>& work) {
  backend_.synchronize();  // what the others are about to read has been computed
  meeting_.seat(thread_) = mine;
  meeting_.arrive();
  try {
    check_equal_calls();
    work();
    backend_.synchronize();
  } catch (...) {
    meeting_.fail(std::current_exception());
  }
  const std::exception_ptr failure = meeting_.depart();
  meeting_.seat(thread_) = {};
  if (failure) std::rethrow_exception(failure);
}

void ThreadCollective::check_equal_calls() const {
  const auto text = [](const ThreadMeeting::Seat& seat) {
    return fmt::format("{} of {} elements and {} parts", seat.call, seat.tensor.elements(), seat.parts);
  };
  for (int thread = 1; thread < threads(); ++thread)
    check(text(meeting_.seat(thread)) == text(meeting_.seat(0)), "replica {} came with {}, replica {} with {}",
          rank() - thread_ + thread, text(meeting_.seat(thread)), rank() - thread_, text(meeting_.seat(0)));
}

std::vector<Addend> ThreadCollective::everybodys_addends() const {
  std::vector<Addend> all;
  for (int thread = 0; thread < threads(); ++thread) {
    const auto& addends = meeting_.seat(thread).addends;
    all.insert(all.end(), addends.begin(), addends.end());
  }
  return all;
}

void ThreadCollective::for_my_blocks(Dim elements, const std::function<void(Dim, const Shape&)>& work) const {
  const Share share = share_of_elements(elements, thread_, threads());
  const Dim block = adder().device().kind == Device::Kind::cpu ? kBlock : elements;  // for speed alone
  for (Dim begin = share.first; begin < share.end(); begin += block)
    work(begin, {std::min(block, share.end() - begin)});
}

void ThreadCollective::spread(const Tensor& sum, Dim begin, const Shape& block) {
  for (int thread = 0; thread < threads(); ++thread)
    if (const Tensor& out = meeting_.seat(thread).tensor; !out.same_memory(sum))
      run(adder(), [&](Kernels& k) { k.cast(sum.window(begin, block), out.window(begin, block)); });
}

void ThreadCollective::all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) {
  const Span span(backend_, "all_reduce_sum", {.bytes = static_cast<double>(out.bytes())}, Profiler::Kind::collective);
  sum(mine, parts, out);
}

void ThreadCollective::start_sum(std::vector<Addend> mine, std::int64_t parts, const Tensor& out) {
  if (!background_) return all_reduce_sum(mine, parts, out);
  background_->start([this, mine = std::move(mine), parts, out] {
    const Span span(backend_, "all_reduce_sum", {.bytes = static_cast<double>(out.bytes())}, Profiler::Kind::collective,
                    true);
    sum(mine, parts, out);
  });
}

void ThreadCollective::finish_sums() {
  if (background_) background_->wait();
}

void ThreadCollective::sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) {
  together({.call = "all_reduce_sum", .addends = mine, .parts = parts, .tensor = out}, [&] {
    const std::vector<Addend> all = everybodys_addends();
    const std::vector<Addend> nodes = add_siblings(all, parts, [](const Tensor&, const Tensor&) {});
    check(processes_ || (nodes.size() == 1 && nodes[0].count == parts),
          "all_reduce_sum: the addends do not cover {} parts", parts);
    for_my_blocks(out.elements(), [&](Dim begin, const Shape& block) {
      add_siblings(all, parts, [&](const Tensor& left, const Tensor& right) {
        add_to_right(adder(), left.window(begin, block), right.window(begin, block));
      });
      if (!processes_) spread(nodes[0].values, begin, block);
    });
    if (!processes_) return;
    backend_.synchronize();
    const Tensor& total = meeting_.seat(0).tensor;
    meeting_.let_one(thread_ == 0, [&] { processes_->all_reduce_sum(nodes, parts, total); });
    for_my_blocks(out.elements(), [&](Dim begin, const Shape& block) { spread(total, begin, block); });
  });
}

void ThreadCollective::broadcast(const Tensor& x, int root) {
  const Span span(backend_, "broadcast", {.bytes = static_cast<double>(x.bytes())}, Profiler::Kind::collective);
  together({.call = "broadcast", .addends = {}, .tensor = x}, [&] {
    const int source = root % threads();  // the root in its own process; in the others the thread that receives
    if (processes_) meeting_.let_one(thread_ == source, [&] { processes_->broadcast(x, root / threads()); });
    if (thread_ != source) run(backend_, [&](Kernels& k) { k.cast(meeting_.seat(source).tensor, x); });
  });
}

void ThreadCollective::barrier() {
  const Span span(backend_, "barrier", {}, Profiler::Kind::collective);
  together({.call = "barrier", .addends = {}, .tensor = {}}, [&] {
    if (processes_) meeting_.let_one(thread_ == 0, [&] { processes_->barrier(); });
  });
}

/// The other processes come first: each thread that this wakes passes on its own reason to them, and only the first
/// reason counts.
void ThreadCollective::abort(const std::string& reason, double waited) {
  if (processes_) processes_->abort(reason, waited);
  meeting_.abort(fmt::format("replica {} has failed", rank()));
}

}  // namespace bertrand::distributed
