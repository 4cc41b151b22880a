// What the kernels of attention share: how the packed tensors are cut into sequences and heads.
#pragma once
#include "tensor/cuda/cuda_backend.h"

namespace bertrand::cuda {

template <class T>
struct AttentionInputs {
  const T* qkv;
  const std::int32_t* offsets;
  Dim hidden;
  int heads, head_dim;
  double scale;  ///< 1 / √head_dim
  DropoutArguments dropout;
};

/// Where a block stands: one head of one sequence.
struct AttentionPlace {
  Dim first, length;  ///< the sequence's tokens
  int head;
  template <class T>
  __device__ explicit AttentionPlace(const AttentionInputs<T>& in)
      : first(in.offsets[blockIdx.z]), length(in.offsets[blockIdx.z + 1] - first), head(static_cast<int>(blockIdx.y)) {}
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

/// Where row i of the sequence has its gradient of query, key or value.
template <class T>
__device__ T* gradient_of(const AttentionInputs<T>& in, const AttentionSaved<T>& saved, const AttentionPlace& place,
                          int which, Dim i) {
  return saved.dqkv + (row_of(in, place, which, i) - in.qkv);
}

/// A block for each `rows` rows of each head of each sequence; those behind a sequence's end leave at once.
inline dim3 attention_grid(const Attention& options, int rows) {
  return dim3(blocks(options.longest, rows), static_cast<unsigned>(options.heads),
              static_cast<unsigned>(options.offsets.elements() - 1));
}

/// Launches with as much dynamic shared memory as it takes; above 48 KiB a kernel must say so first.
template <class... Parameters, class... Arguments>
void launch_with_tiles(void (*kernel)(Parameters...), dim3 grid, int threads, std::size_t bytes, cudaStream_t stream,
                       Arguments&&... arguments) {
  if (bytes > 48 << 10)
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
               "shared memory");
  launch(kernel, grid, threads, bytes, stream, arguments...);
}

// attention_tensor_cores.cu: the same for bf16 and f16. False where it has no kernel for this head_dim.
template <class T>
bool attention_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options, T* context, float* log_sum,
                               cudaStream_t stream);
template <class T>
bool attention_backward_on_tensor_cores(const AttentionInputs<T>& in, const Attention& options,
                                        const AttentionSaved<T>& saved, cudaStream_t stream);

}  // namespace bertrand::cuda
