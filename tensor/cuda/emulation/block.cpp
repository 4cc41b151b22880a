#include "tensor/cuda/emulation/block.h"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <vector>

#include "io/error.h"

// AddressSanitizer must know when a thread changes stacks. Without it these functions are absent.
extern "C" {
__attribute__((weak)) void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void* fake_stack, const void** bottom, std::size_t* size);
}

namespace bertrand::cuda::emulation {
namespace {

using boost::context::fiber;
using boost::context::fixedsize_stack;

constexpr std::size_t kStackBytes = 256 << 10;
constexpr int kSeveral = -1, kManyWarps = -2;  // instead of one reader

struct Stack {
  const void* bottom = nullptr;
  std::size_t size = 0;
};

/// One thread of the block, on a stack of its own that it keeps from block to block.
class Thread {
 public:
  enum class State { ready, at_block_barrier, at_warp_exchange, at_warp_barrier, finished };

  explicit Thread(const std::function<void()>*& body);
  ~Thread();
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;
  void resume();
  void wait(State at, const Where& where);

  State state = State::finished;
  Where where;
  std::exception_ptr error;
  std::deque<std::vector<std::function<void()>>> copies;  ///< groups that nobody waited for yet; the last one is open

 private:
  struct Leave {};  ///< thrown where the thread waits
  void run_body(const std::function<void()>& body);

  fiber self_, scheduler_;
  Stack stack_, scheduler_stack_;
  void* fake_stack_ = nullptr;
  bool leaving_ = false;
};

Thread::Thread(const std::function<void()>*& body) {
  fixedsize_stack allocator(kStackBytes);
  const boost::context::stack_context memory = allocator.allocate();
  stack_ = {static_cast<std::byte*>(memory.sp) - memory.size, memory.size};
  self_ = fiber(std::allocator_arg, boost::context::preallocated(memory.sp, memory.size, memory), allocator,
                [this, &body](fiber&& scheduler) {
                  if (__sanitizer_finish_switch_fiber)
                    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack_.bottom, &scheduler_stack_.size);
                  scheduler_ = std::move(scheduler);
                  try {
                    while (!leaving_) {
                      run_body(*body);
                      wait(State::finished, Where::current());
                    }
                  } catch (const Leave&) {
                  }
                  if (__sanitizer_start_switch_fiber)
                    __sanitizer_start_switch_fiber(nullptr, scheduler_stack_.bottom, scheduler_stack_.size);
                  return std::move(scheduler_);
                });
}

void Thread::run_body(const std::function<void()>& body) {
  copies.assign(1, {});
  try {
    body();
  } catch (const Leave&) {
    throw;  // the block was given up while this thread waited
  } catch (...) {
    error = std::current_exception();
  }
}

/// Lets the fiber run to its end, wherever it waits: one that is destroyed changes stacks unseen.
Thread::~Thread() {
  leaving_ = true;
  resume();
}

void Thread::resume() {
  void* fake_stack = nullptr;
  if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&fake_stack, stack_.bottom, stack_.size);
  self_ = std::move(self_).resume();
  if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

void Thread::wait(State at, const Where& from) {
  state = at;
  where = from;
  if (__sanitizer_start_switch_fiber)
    __sanitizer_start_switch_fiber(&fake_stack_, scheduler_stack_.bottom, scheduler_stack_.size);
  scheduler_ = std::move(scheduler_).resume();
  if (__sanitizer_finish_switch_fiber)
    __sanitizer_finish_switch_fiber(fake_stack_, &scheduler_stack_.bottom, &scheduler_stack_.size);
  if (leaving_) throw Leave{};
}

/// The numbers 0 … count − 1 in an order that a seed names.
class Order {
 public:
  Order(std::uint64_t count, std::uint64_t seed) : count_(count) {
    if (seed == 0 || count < 2) return;
    first_ = seed * 0x9E3779B97F4A7C15u % count;
    for (stride_ = 1 + (seed >> 3) % (count - 1); std::gcd(stride_, count) != 1;) ++stride_;
  }
  std::uint64_t operator[](std::uint64_t i) const { return (first_ + i * stride_) % count_; }

 private:
  std::uint64_t count_, first_ = 0, stride_ = 1;
};

/// A warp's exchange is read while the next one fills: two take turns.
struct Warp {
  Exchange exchanges[2];
  int turn = 0;
  std::uint32_t interval = 0;  ///< barriers of this warp so far
};

class Machine {
 public:
  void run(const std::string& kernel, const Grid& grid, const std::function<void()>& body);

  std::uint64_t seed = 0;
  std::uint64_t block_number = 0, interval = 0;  // ever rising, so that no stamp of an old block matches
  int current = 0;
  std::vector<std::unique_ptr<Thread>> threads;
  std::vector<Warp> warps;
  std::vector<std::byte> shared;
  std::vector<Shadow> shared_shadows;

  Thread& thread() { return *threads[static_cast<std::size_t>(current)]; }
  Warp& warp() { return warps[static_cast<std::size_t>(current / 32)]; }

 private:
  void run_block(int count);
  bool release_warps(int count);
  [[noreturn]] void report_divergence(int count);
  std::uint64_t next_order() { return seed == 0 ? 0 : seed = seed * 6364136223846793005u + 1442695040888963407u; }

  std::mutex mutex_;
  const std::function<void()>* body_ = nullptr;
};

Machine& machine() {
  static Machine one;
  return one;
}

void Machine::run(const std::string& kernel, const Grid& grid, const std::function<void()>& body) {
  const std::lock_guard lock(mutex_);
  const unsigned count = grid.block.x * grid.block.y * grid.block.z;
  check(count >= 1 && count <= 1024 && grid.block.z <= 64,
        "{}: expected a block of 1 to 1024 threads, of which z has at most 64, got {} x {} x {}", kernel, grid.block.x,
        grid.block.y, grid.block.z);
  check(grid.grid.x >= 1 && grid.grid.y >= 1 && grid.grid.z >= 1 && grid.grid.x < 1u << 31 && grid.grid.y < 65536 &&
            grid.grid.z < 65536,
        "{}: expected a grid of 1 to 2147483647 x 65535 x 65535 blocks, got {} x {} x {}", kernel, grid.grid.x,
        grid.grid.y, grid.grid.z);
  body_ = &body;
  while (threads.size() < count) threads.push_back(std::make_unique<Thread>(body_));
  warps.resize((count + 31) / 32);
  shared.resize(grid.shared_bytes);
  shared_shadows.assign(grid.shared_bytes, {});
  blockDim = grid.block;
  gridDim = grid.grid;
  const std::uint64_t blocks = std::uint64_t{grid.grid.x} * grid.grid.y * grid.grid.z;
  const Order order(blocks, next_order());
  try {
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uint64_t b = order[i];
      blockIdx = dim3(static_cast<unsigned>(b % grid.grid.x), static_cast<unsigned>(b / grid.grid.x % grid.grid.y),
                      static_cast<unsigned>(b / grid.grid.x / grid.grid.y));
      run_block(static_cast<int>(count));
    }
  } catch (const Error& error) {
    threads.clear();  // unwinds those that wait
    fail(error.failure(), "{}: {}", kernel, error.what());
  }
}

void Machine::run_block(int count) {
  ++block_number;
  ++interval;
  for (Warp& w : warps) w.interval = 0;
  for (int t = 0; t < count; ++t) threads[static_cast<std::size_t>(t)]->state = Thread::State::ready;
  while (true) {
    const Order order(static_cast<std::uint64_t>(count), next_order());
    for (int i = 0; i < count; ++i) {
      current = static_cast<int>(order[static_cast<std::uint64_t>(i)]);
      if (thread().state != Thread::State::ready) continue;
      const auto t = static_cast<unsigned>(current);
      threadIdx = dim3(t % blockDim.x, t / blockDim.x % blockDim.y, t / blockDim.x / blockDim.y);
      thread().resume();
      if (thread().error) std::rethrow_exception(std::exchange(thread().error, nullptr));
    }
    if (release_warps(count)) continue;
    int finished = 0, waiting = 0;
    for (int t = 0; t < count; ++t) {
      finished += threads[static_cast<std::size_t>(t)]->state == Thread::State::finished;
      waiting += threads[static_cast<std::size_t>(t)]->state == Thread::State::at_block_barrier;
    }
    if (finished == count) return;
    if (waiting < count) report_divergence(count);
    ++interval;
    for (int t = 0; t < count; ++t) threads[static_cast<std::size_t>(t)]->state = Thread::State::ready;
  }
}

/// Lets those warps go on whose lanes have all come to the same meeting.
bool Machine::release_warps(int count) {
  bool any = false;
  for (int first = 0; first + 32 <= count; first += 32) {
    const auto lanes = std::span(threads).subspan(static_cast<std::size_t>(first), 32);
    const Thread::State at = lanes[0]->state;
    if (at != Thread::State::at_warp_exchange && at != Thread::State::at_warp_barrier) continue;
    if (!std::all_of(lanes.begin(), lanes.end(), [&](const auto& lane) { return lane->state == at; })) continue;
    for (const auto& lane : lanes) lane->state = Thread::State::ready;
    Warp& warp = warps[static_cast<std::size_t>(first / 32)];
    if (at == Thread::State::at_warp_barrier) ++warp.interval;
    else warp.turn ^= 1;
    any = true;
  }
  return any;
}

void Machine::report_divergence(int count) {
  const auto place = [&](int t) {
    const Thread& one = *threads[static_cast<std::size_t>(t)];
    if (one.state == Thread::State::finished) return fmt::format("thread {} has left", t);
    const char* kind = one.state == Thread::State::at_block_barrier  ? "block barrier"
                       : one.state == Thread::State::at_warp_barrier ? "warp barrier"
                                                                     : "warp exchange";
    return fmt::format("thread {} waits at the {} of {}:{}", t, kind, one.where.file_name(), one.where.line());
  };
  int first = 0, other = 0;
  while (threads[static_cast<std::size_t>(first)]->state == Thread::State::finished) ++first;
  for (int t = 0; t < count; ++t) {
    const Thread &a = *threads[static_cast<std::size_t>(first)], &b = *threads[static_cast<std::size_t>(t)];
    if (a.state != b.state || a.where.line() != b.where.line()) other = t;
  }
  fail(Failure::bug, "block ({}, {}, {}): not all threads come to a barrier: {}, {}", blockIdx.x, blockIdx.y,
       blockIdx.z, place(first), place(other));
}

}  // namespace

void run(const std::string& kernel, const Grid& grid, const std::function<void()>& body) {
  machine().run(kernel, grid, body);
}
void shuffle(std::uint64_t seed) { machine().seed = seed; }
unsigned lane() { return static_cast<unsigned>(machine().current) % 32; }

void start_copy(std::function<void()> copy) { machine().thread().copies.back().push_back(std::move(copy)); }
void end_copies() { machine().thread().copies.emplace_back(); }
void wait_for_copies(std::size_t later) {
  auto& groups = machine().thread().copies;
  for (; groups.size() > later + 1; groups.pop_front())
    for (const std::function<void()>& copy : groups.front()) copy();
}

void stop(const std::string& message) {
  fail(Failure::bug, "block ({}, {}, {}), thread ({}, {}, {}): {}", blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
       threadIdx.y, threadIdx.z, message);
}

void block_barrier(const Where& where) { machine().thread().wait(Thread::State::at_block_barrier, where); }

namespace {
void check_mask(std::uint32_t mask) {
  if (mask != 0xffffffffu) stop(fmt::format("a warp meets in full here, got the mask {:#x}", mask));
}
}  // namespace

const Exchange& exchange(std::uint32_t mask, const void* value, std::size_t bytes, const Where& where) {
  check_mask(mask);
  Machine& m = machine();
  Exchange& all = m.warp().exchanges[m.warp().turn];
  std::memcpy(all.values[lane()], value, bytes);
  m.thread().wait(Thread::State::at_warp_exchange, where);
  return all;
}

void warp_barrier(std::uint32_t mask, const Where& where) {
  check_mask(mask);
  machine().thread().wait(Thread::State::at_warp_barrier, where);
}

std::byte* dynamic_shared_data() { return machine().shared.data(); }
Shadow* dynamic_shared_shadows() { return machine().shared_shadows.data(); }
std::size_t dynamic_shared_bytes() { return machine().shared.size(); }

namespace {

/// Whether what thread `other` of `other_warp` did is ordered before what the running thread does now.
bool ordered(std::uint64_t then, std::uint32_t warp_then, int other_warp) {
  const Machine& m = machine();
  if (then != m.interval) return true;
  return other_warp == m.current / 32 && warp_then < m.warps[static_cast<std::size_t>(other_warp)].interval;
}

}  // namespace

void note_read(Shadow& s, std::int64_t index) {
  const Machine& m = machine();
  const int me = m.current;
  if (s.block != m.block_number) stop(fmt::format("reads shared element {}, which this block has not written", index));
  if (s.writer != me && !ordered(s.write_interval, s.write_warp_interval, s.writer / 32))
    stop(fmt::format("reads shared element {}, which thread {} wrote with no barrier between", index, s.writer));
  const std::uint32_t warp_interval = m.warps[static_cast<std::size_t>(me / 32)].interval;
  if (s.read_interval != m.interval) {
    s.reader = me;
    s.reader_warp = me / 32;
  } else if (s.reader != me) {
    s.reader = s.reader != kManyWarps && s.reader_warp == me / 32 ? kSeveral : kManyWarps;
  }
  s.read_interval = m.interval;
  s.read_warp_interval = warp_interval;
}

void note_write(Shadow& s, std::int64_t index) {
  const Machine& m = machine();
  const int me = m.current;
  if (s.block == m.block_number && s.writer != me && !ordered(s.write_interval, s.write_warp_interval, s.writer / 32))
    stop(fmt::format("writes shared element {}, which thread {} wrote with no barrier between", index, s.writer));
  if (s.read_interval == m.interval && s.reader != me &&
      (s.reader == kManyWarps || !ordered(s.read_interval, s.read_warp_interval, s.reader_warp)))
    stop(fmt::format("writes shared element {}, which {} read with no barrier between", index,
                     s.reader >= 0 ? fmt::format("thread {}", s.reader) : "other threads"));
  s.block = m.block_number;
  s.write_interval = m.interval;
  s.write_warp_interval = m.warps[static_cast<std::size_t>(me / 32)].interval;
  s.writer = me;
}

}  // namespace bertrand::cuda::emulation
