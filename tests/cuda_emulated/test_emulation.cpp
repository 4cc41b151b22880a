// The emulation catches what CUDA leaves undefined: each mistake is planted in a small kernel and seen to be found.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <numeric>
#include <regex>
#include <sstream>
#include <vector>

#include "support/paths.h"
#include "tensor/cuda/launch.h"
#include "tensor/cuda/reduce.h"

// Without AddressSanitizer it is not there.
extern "C" __attribute__((weak)) void __asan_poison_memory_region(const volatile void* begin, std::size_t bytes);

using namespace bertrand;
using namespace bertrand::cuda;

namespace {

constexpr int kCount = 256;

/// out = in from back to front, through shared memory.
__global__ void reverse_kernel(const float* in, float* out, bool with_barrier) {
  __shared__ SharedArray<float, kCount> tile;
  tile[threadIdx.x] = in[threadIdx.x];
  if (with_barrier) __syncthreads();
  out[threadIdx.x] = tile[kCount - 1 - static_cast<int>(threadIdx.x)];
}

__global__ void one_past_the_end_kernel(float* out) {
  __shared__ SharedArray<float, kCount> tile;
  tile[threadIdx.x + 1] = 1;
  out[threadIdx.x] = 0;
}

__global__ void dynamic_past_the_end_kernel(float* out) {
  const SharedSpan<float> tile(0, kCount);
  tile[threadIdx.x + 1] = 1;
  out[threadIdx.x] = 0;
}

__global__ void same_cell_kernel(bool one_thread_only) {
  __shared__ SharedArray<unsigned, 1> winner;
  if (!one_thread_only || threadIdx.x == 3) winner[0] = threadIdx.x;
}

/// Tells the neighbour in the warp.
__global__ void neighbour_kernel(int* out, bool with_barrier) {
  __shared__ SharedArray<int, kCount> cells;
  cells[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_barrier) __syncwarp();
  out[threadIdx.x] = cells[threadIdx.x ^ 1u];
  if (with_barrier) __syncwarp();
  cells[threadIdx.x ^ 1u] = 0;
}

__global__ void accumulate_kernel(double* out, bool with_barrier) {
  __shared__ SharedArray<double, 1> total;
  if (threadIdx.x == 0) total[0] = 0;
  for (unsigned turn = 0; turn < blockDim.x; ++turn) {
    if (with_barrier || turn == 0) __syncthreads();
    if (threadIdx.x == turn) total[0] += 1;
  }
  __syncthreads();
  if (threadIdx.x == 0) *out = total[0];
}

__global__ void half_the_block_kernel() {
  if (threadIdx.x < kCount / 2) __syncthreads();
}
__global__ void leave_early_kernel(int limit) {
  if (static_cast<int>(threadIdx.x) >= limit) return;
  __syncthreads();
}
__global__ void half_a_warp_kernel(float* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_xor_sync(kAllLanes, 1.0f, 1);
}
__global__ void different_barriers_kernel() {
  if (threadIdx.x % 2 == 0) __syncthreads();
  else __syncwarp();
}

__global__ void nobody_wrote_kernel(float* out) {
  __shared__ SharedArray<float, kCount> tile;
  if (threadIdx.x > 0) tile[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[(threadIdx.x + 1) % kCount];
}

/// Copies all but the last four elements, and reads them from back to front.
__global__ void copy_kernel(const std::uint32_t* in, std::uint32_t* out, bool waits, bool meets) {
  const SharedSpan<std::uint32_t> tile(0, kCount);
  const int thread = static_cast<int>(threadIdx.x), quarter = kCount / 4;
  if (thread < quarter) start_copy(tile, 4 * thread, in + 4 * thread, thread < quarter - 1);
  end_copies();
  end_copies();  // a group may be empty
  if (waits) wait_for_copies<1>();
  if (meets) __syncthreads();
  out[threadIdx.x] = tile[kCount - 1 - thread];
}
/// Copies to where another thread has not read yet, or has.
__global__ void copy_too_early_kernel(const std::uint32_t* in, std::uint32_t* out, bool meets) {
  const SharedSpan<std::uint32_t> tile(0, kCount);
  const int thread = static_cast<int>(threadIdx.x);
  tile[thread] = 0;
  __syncthreads();
  out[thread] = tile[kCount - 1 - thread];
  if (meets) __syncthreads();
  if (thread < kCount / 4) start_copy(tile, 4 * thread, in + 4 * thread, true);
  end_copies();
  wait_for_copies<0>();
}

__global__ void last_block_wins_kernel(unsigned* out) { *out = blockIdx.x; }
__global__ void own_cell_kernel(unsigned* out) { out[blockIdx.x] = blockIdx.x; }
__global__ void sum_kernel(const float* in, float* out) {
  const float total = block_sum(in[threadIdx.x]);
  out[threadIdx.x] = total;
}
__global__ void write_at_kernel(float* out, Dim at) {
  if (threadIdx.x == 0) out[at] = 1;
}
__global__ void read_at_kernel(float* data, Dim at) {
  if (threadIdx.x == 0) data[0] = data[at];
}
__global__ void nothing_kernel() {}

/// The message of the Error that `body` throws, or "".
template <class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Whether a process of its own lives on after a kernel that touches one element of `count`, and the GPU with it.
bool runs_well(void (*kernel)(float*, Dim), Dim count, Dim at) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);  // not doctest's
    close(STDERR_FILENO);      // where AddressSanitizer tells of what it found
    void* data = nullptr;
    cudaMallocAsync(&data, static_cast<std::size_t>(count) * sizeof(float), nullptr);
    launch(kernel, 1, 32, 0, nullptr, static_cast<float*>(data), at);
    cudaFreeAsync(data, nullptr);
    _exit(cudaStreamSynchronize(nullptr) == cudaSuccess ? 0 : 7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0;
}

/// Runs a test under the natural order and some others.
template <class Body>
void in_many_orders(const Body& body) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    CAPTURE(seed);
    emulation::shuffle(seed);
    body();
  }
  emulation::shuffle(0);
}

}  // namespace

TEST_CASE("a kernel without a mistake runs, in any order of blocks and threads") {
  std::vector<float> in(kCount), out(kCount);
  std::iota(in.begin(), in.end(), 0.0f);
  in_many_orders([&] {
    launch(reverse_kernel, 3, kCount, 0, nullptr, in.data(), out.data(), true);
    CHECK(out.front() == kCount - 1);
    CHECK(out.back() == 0);
    launch(sum_kernel, 1, kCount, 0, nullptr, in.data(), out.data());
    for (const float x : out) CHECK(x == kCount * (kCount - 1) / 2);
    double total = 0;
    launch(accumulate_kernel, 1, 64, 0, nullptr, &total, true);
    CHECK(total == 64);
    std::vector<int> neighbours(kCount);
    launch(neighbour_kernel, 1, kCount, 0, nullptr, neighbours.data(), true);
    for (int i = 0; i < kCount; ++i) CHECK(neighbours[static_cast<std::size_t>(i)] == (i ^ 1));
    launch(same_cell_kernel, 1, kCount, 0, nullptr, true);
  });
}

TEST_CASE("a missing __syncthreads is found whatever the order, and the message names kernel, block and threads") {
  std::vector<float> in(kCount), out(kCount);
  in_many_orders([&] {
    const std::string message =
        message_of([&] { launch(reverse_kernel, 2, kCount, 0, nullptr, in.data(), out.data(), false); });
    // A thread reads what another has not written yet, or has, or writes what another has read already.
    CHECK((contains(message, "with no barrier between") || contains(message, "which this block has not written")));
    CHECK(contains(message, "block ("));
    double total = 0;
    CHECK(contains(message_of([&] { launch(accumulate_kernel, 1, 64, 0, nullptr, &total, false); }),
                   "with no barrier between"));
  });
}

TEST_CASE("a missing __syncwarp is found") {
  std::vector<int> out(kCount);
  in_many_orders([&] {
    CHECK_FALSE(message_of([&] { launch(neighbour_kernel, 1, kCount, 0, nullptr, out.data(), false); }).empty());
  });
}

TEST_CASE("two threads that write one shared cell are found") {
  in_many_orders([] {
    CHECK(contains(message_of([] { launch(same_cell_kernel, 1, kCount, 0, nullptr, false); }),
                   "writes shared element 0, which thread"));
  });
}

TEST_CASE("an index one past the end of shared memory is found") {
  std::vector<float> out(kCount);
  CHECK(contains(message_of([&] { launch(one_past_the_end_kernel, 1, kCount, 0, nullptr, out.data()); }),
                 "shared element 256 of 256"));
  CHECK(contains(
      message_of([&] { launch(dynamic_past_the_end_kernel, 1, kCount, kCount * sizeof(float), nullptr, out.data()); }),
      "shared element 256 of 256"));
  CHECK(contains(message_of([&] {
                   launch(dynamic_past_the_end_kernel, 1, kCount, kCount * sizeof(float) - 1, nullptr, out.data());
                 }),
                 "of dynamic shared memory"));
}

TEST_CASE("a write one past the end of device memory is found") {
  // After the memory lies a page that ends the program; what lies before is found broken.
  for (const Dim count : {100, 99}) {
    CHECK(runs_well(write_at_kernel, count, count - 1));
    CHECK_FALSE(runs_well(write_at_kernel, count, count));
    CHECK_FALSE(runs_well(write_at_kernel, count, -1));
  }
  CHECK_FALSE(runs_well(read_at_kernel, 100, 100));
}

TEST_CASE("a read one past the end or before the beginning of device memory is found by AddressSanitizer") {
  if (!__asan_poison_memory_region) {
    MESSAGE("SKIPPED: this build has no AddressSanitizer");
    return;
  }
  for (const Dim count : {1, 97, 99, 100, 1023, 1024}) {
    CAPTURE(count);
    CHECK(runs_well(read_at_kernel, count, count - 1));
    CHECK_FALSE(runs_well(read_at_kernel, count, count));
    CHECK_FALSE(runs_well(read_at_kernel, count, -1));
  }
}

TEST_CASE("a barrier that not all threads reach is found") {
  std::vector<float> out(kCount);
  CHECK(contains(message_of([] { launch(half_the_block_kernel, 1, kCount, 0, nullptr); }),
                 "not all threads come to a barrier"));
  CHECK(contains(message_of([] { launch(leave_early_kernel, 1, kCount, 0, nullptr, 255); }), "thread 255 has left"));
  CHECK(message_of([] { launch(leave_early_kernel, 1, kCount, 0, nullptr, 256); }).empty());
  CHECK(contains(message_of([&] { launch(half_a_warp_kernel, 1, kCount, 0, nullptr, out.data()); }),
                 "not all threads come to a barrier"));
  CHECK(contains(message_of([] { launch(different_barriers_kernel, 1, kCount, 0, nullptr); }),
                 "not all threads come to a barrier"));
}

TEST_CASE("a read of shared memory that was never written is found") {
  std::vector<float> out(kCount);
  CHECK(contains(message_of([&] { launch(nobody_wrote_kernel, 1, kCount, 0, nullptr, out.data()); }),
                 "reads shared element 0, which this block has not written"));
}

TEST_CASE("a result that depends on the order of blocks changes when they are shuffled") {
  unsigned last = 0;
  std::vector<unsigned> winners, cells(50);
  in_many_orders([&] {
    launch(last_block_wins_kernel, 50, 1, 0, nullptr, &last);
    winners.push_back(last);
    launch(own_cell_kernel, 50, 1, 0, nullptr, cells.data());
    for (unsigned i = 0; i < 50; ++i) CHECK(cells[i] == i);
  });
  CHECK(winners[0] == 49);
  CHECK(std::count(winners.begin(), winners.end(), 49u) < 5);
}

TEST_CASE("a copy to shared memory is there after its thread waited and the others met it") {
  alignas(16) static std::uint32_t in[kCount];
  std::uint32_t out[kCount];
  std::iota(std::begin(in), std::end(in), 1u);
  const auto copy = [&](bool waits, bool meets) {
    return message_of([&] { launch(copy_kernel, 1, kCount, kCount * 4, nullptr, in, out, waits, meets); });
  };
  const auto right = [&] {
    int count = 0;
    for (std::uint32_t i = 0; i < kCount; ++i) count += out[i] == (i < 4 ? 0 : kCount - i);
    return count;
  };
  CHECK(copy(true, true).empty());
  CHECK(right() == kCount);
  CHECK(copy(false, true).empty());  // nothing sees it on a GPU either, but the numbers are others
  CHECK(right() == 0);
  CHECK(copy(true, false).find("reads shared element") != std::string::npos);
  const auto too_early = [&](bool meets) {
    return message_of([&] { launch(copy_too_early_kernel, 1, kCount, kCount * 4, nullptr, in, out, meets); });
  };
  CHECK(too_early(true).empty());
  CHECK(too_early(false).find("read with no barrier between") != std::string::npos);
}

TEST_CASE("launches that a GPU refuses are refused") {
  CHECK_FALSE(message_of([] { launch(nothing_kernel, 1, 1025, 0, nullptr); }).empty());
  CHECK_FALSE(message_of([] { launch(nothing_kernel, dim3(1, 65536), 32, 0, nullptr); }).empty());
  CHECK_FALSE(message_of([] { launch(nothing_kernel, 1, 32, 48 * 1024 + 1, nullptr); }).empty());
  check_cuda(cudaFuncSetAttribute(nothing_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024), "attribute");
  CHECK(message_of([] { launch(nothing_kernel, 1, 32, 64 * 1024, nullptr); }).empty());
  CHECK(message_of([] { launch(nothing_kernel, 0, 1024, 0, nullptr); }).empty());
}

TEST_CASE("the walk through a kernel that the documentation shows stops at the line it shows") {
  std::ifstream in(paths::source + "/docs/cuda_on_a_laptop.md");
  std::ostringstream page;
  page << in.rdbuf();
  const std::string text = page.str();
  const std::regex shown(R"(\n    (\d+)\t([^\n]+))");
  int lines = 0;
  for (std::sregex_iterator match(text.begin(), text.end(), shown), end; match != end; ++match, ++lines) {
    std::ifstream source(paths::source + "/tensor/cuda/norm.cu");
    std::string line;
    for (int i = std::stoi((*match)[1]); i > 0; --i) std::getline(source, line);
    CHECK(line == (*match)[2].str());
    if (lines == 0) CHECK(text.find("break norm.cu:" + (*match)[1].str()) != std::string::npos);
  }
  CHECK(lines == 3);
}
