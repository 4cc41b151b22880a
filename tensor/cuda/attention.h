// What the kernels of attention share: how the packed tensors are cut into sequences and heads.
#pragma once
#include "tensor/cuda/cuda_backend.h"

namespace bertrand::cuda {

template <class T>
struct AttentionInputs {
  const T* qkv;
  const std::int32_t* offsets;
  Dim sequences, tokens, hidden;
  int heads, head_dim, longest;
  double scale;  ///< 1 / √head_dim
  DropoutArguments dropout;
  IndexCheck check;
};

/// Blocks that own `rows` rows each and cover the longest sequence.
constexpr unsigned parts(int longest, int rows) { return static_cast<unsigned>((longest + rows - 1) / rows); }

/// The part of a block: `rows` rows of one head of one sequence.
struct AttentionPlace {
  Dim first, length;  ///< the sequence's tokens
  int head;
  Dim row;  ///< the first it owns, counted from the sequence's first
  template <class T>
  __device__ AttentionPlace(const AttentionInputs<T>& in, int rows) {
    const unsigned of_head = parts(in.longest, rows), heads = static_cast<unsigned>(in.heads);
    const unsigned sequence = blockIdx.x / of_head / heads;
    first = in.offsets[sequence];
    length = in.offsets[sequence + 1] - first;
    const auto good = [&](Dim i) {
      return in.check.good(
          offset_range(i, in.offsets[i], i == 0 ? 0 : in.offsets[i - 1], in.sequences, in.tokens, in.longest));
    };
    const bool begins = sequence > 0 || good(0);  // the end of the sequence before is checked by its block
    if (!begins || !good(sequence + 1) || first < 0) first = length = 0;  // the block leaves
    head = static_cast<int>(blockIdx.x / of_head % heads);
    row = static_cast<Dim>(blockIdx.x % of_head) * rows;
  }
};

/// Query, key or value (which = 0, 1, 2) of row i of the sequence.
template <class T>
__device__ const T* row_of(const AttentionInputs<T>& in, const AttentionPlace& place, int which, Dim i) {
  return in.qkv + (place.first + i) * 3 * in.hidden + which * in.hidden + place.head * in.head_dim;
}

/// What backward reads and writes.
template <class T>
struct AttentionSaved {
  const T *context, *dcontext;
  const Compute<T>* log_sum;
  Compute<T>* dots;  ///< [tokens, heads]: rowsum(dO ∘ O)
  T* dqkv;
};

/// The gradient of the query, key or value of row i of the sequence.
template <class T>
__device__ T* gradient_of(const AttentionInputs<T>& in, const AttentionSaved<T>& saved, const AttentionPlace& place,
                          int which, Dim i) {
  return saved.dqkv + (row_of(in, place, which, i) - in.qkv);
}

/// A block for each `rows` rows of each head of each sequence; those after a sequence's end leave at once. All along
/// x, which may be long.
inline dim3 attention_grid(const Attention& options, int rows) {
  return blocks((options.offsets.elements() - 1) * options.heads * parts(static_cast<int>(options.longest), rows), 1);
}

/// Launches a kernel with this much dynamic shared memory; more than 48 KiB must be asked for first. Throws
/// Error(Failure::usage) if a block of this GPU has less.
template <class T, class... Parameters, class... Arguments>
void launch_with_tiles(void (*kernel)(AttentionInputs<T>, Parameters...), dim3 grid, int threads, std::size_t bytes,
                       cudaStream_t stream, const AttentionInputs<T>& in, Arguments&&... arguments) {
  if (bytes > 48 << 10) {
    const cudaError_t error =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    if (error == cudaErrorInvalidValue) {
      cudaGetLastError();  // forgets it
      fail(Failure::usage,
           "attention: expected heads that fit into a block's shared memory of this GPU, got {} of {} columns in {}, "
           "which take {} bytes; hint: another --precision",
           in.heads, in.head_dim, name_of(dtype_of<T>()), bytes);
    }
    check_cuda(error, "shared memory");
  }
  launch(kernel, grid, threads, bytes, stream, in, arguments...);
}

// attention_tensor_cores.cu: the same for bf16 and f16. False if it has no kernel for this head_dim.
template <class T>
bool attention_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options, T* context, float* log_sum,
                               cudaStream_t stream);
template <class T>
bool attention_backward_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options,
                                        const AttentionSaved<T>& saved, cudaStream_t stream);

// attention_short.cu: the same for sequences of at most kShort tokens. False if it has no kernel for this head_dim.
inline constexpr int kShort = 128;
template <class T>
bool short_attention_backward(const AttentionInputs<T>& in, const Attention& options, const AttentionSaved<T>& saved,
                              cudaStream_t stream);

}  // namespace bertrand::cuda
