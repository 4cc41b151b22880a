// CUDA's threads on one processor core. The threads of a block are fibers: each runs until it meets the others at a
// barrier or a warp exchange, then the next one goes on. Whatever CUDA leaves undefined is an error here: a barrier
// that not all threads reach, two threads at one shared cell without a barrier between them, an index past the end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned in_x = 1, unsigned in_y = 1, unsigned in_z = 1) : x(in_x), y(in_y), z(in_z) {}
};

// The place of the running thread. A kernel reads these numbers as on a GPU; a debugger may print them.
inline dim3 threadIdx(0, 0, 0), blockIdx(0, 0, 0), blockDim, gridDim;

namespace bertrand::cuda::emulation {

using Where = std::source_location;

/// What a kernel may ask of the block it runs in.
struct Grid {
  dim3 grid, block;
  std::size_t shared_bytes = 0;  ///< size of the dynamic shared memory
};

/// Runs `body` once for each thread of the grid, block after block. Throws Error(Failure::bug) naming kernel, block and
/// thread if the kernel did what CUDA leaves undefined.
void run(const std::string& kernel, const Grid& grid, const std::function<void()>& body);

/// Runs blocks, and threads between two barriers, in another order for each seed; 0 is the natural one. A result that
/// changes with it depends on what CUDA does not promise.
void shuffle(std::uint64_t seed);

void block_barrier(const Where& where);

/// One value of each lane of a warp, given to all lanes: the meeting point of shuffles, votes and matrix products. Only
/// whole warps meet; a mask that names fewer lanes stops the kernel.
struct Exchange {
  alignas(16) std::byte values[32][64];
  template <class T>
  const T& of(unsigned lane) const {
    return reinterpret_cast<const T&>(values[lane % 32]);
  }
};
const Exchange& exchange(std::uint32_t mask, const void* value, std::size_t bytes, const Where& where);
void warp_barrier(std::uint32_t mask, const Where& where);
unsigned lane();

/// Copies that a thread starts and does not wait for, in groups, as cp.async makes them: `copy` runs when the thread
/// waits for its group.
void start_copy(std::function<void()> copy);
void end_copies();
/// For all groups but the last `later`.
void wait_for_copies(std::size_t later);

/// Stops the kernel with a message that names the place of the running thread.
[[noreturn]] void stop(const std::string& message);

/// The threads that touched a cell of shared memory since the last barrier.
struct Shadow {
  std::uint64_t block = 0;  ///< the block that wrote it last: each begins with memory that is not written yet
  std::uint64_t write_interval = 0, read_interval = 0;            ///< between two block barriers
  std::uint32_t write_warp_interval = 0, read_warp_interval = 0;  ///< between two barriers of the warp
  int writer = 0, reader = 0;  ///< thread, or kSeveral readers of a warp, or of many warps
  int reader_warp = 0;
};
void note_read(Shadow& shadow, std::int64_t index);
void note_write(Shadow& shadow, std::int64_t index);

/// The dynamic shared memory of the running block.
std::byte* dynamic_shared_data();
Shadow* dynamic_shared_shadows();  ///< one for each byte
std::size_t dynamic_shared_bytes();

}  // namespace bertrand::cuda::emulation
