#include "tensor/cuda/emulation/blas.h"

#include <Eigen/Core>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "tensor/dtype.h"

struct EmulatedBlas {};
struct EmulatedProduct {
  cublasComputeType_t compute;
  cublasOperation_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  void* pre_activation = nullptr;
  std::int64_t pre_activation_stride = 0;
};
struct EmulatedLayout {
  cudaDataType_t type;
  Eigen::Index rows, columns, stride;
};
struct EmulatedPreference {
  std::uint32_t reduction_schemes = ~0u;
};

namespace {

constexpr int kAlgorithms = 3;
constexpr double kPretendedMilliseconds[kAlgorithms] = {2, 1, 3};
int last_number = -1, asked = 0;
bool checks_fully = true, depths_are_shared = false;
cublasStatus_t refused_epilogue = CUBLAS_STATUS_SUCCESS;

using bertrand::BFloat16;
using bertrand::Float16;

/// A column-major matrix of any type, as numbers to compute with.
template <class R, class T>
Eigen::MatrixX<R> numbers(const void* data, const EmulatedLayout& layout) {
  Eigen::MatrixX<R> out(layout.rows, layout.columns);
  for (Eigen::Index j = 0; j < layout.columns; ++j)
    for (Eigen::Index i = 0; i < layout.rows; ++i) {
      const T x = static_cast<const T*>(data)[j * layout.stride + i];
      if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) out(i, j) = static_cast<float>(x);
      else out(i, j) = x;
    }
  return out;
}

template <class R, class T>
void round_into(const Eigen::MatrixX<R>& from, void* to, Eigen::Index stride) {
  for (Eigen::Index j = 0; j < from.cols(); ++j)
    for (Eigen::Index i = 0; i < from.rows(); ++i) static_cast<T*>(to)[j * stride + i] = T(from(i, j));
}

/// As CUBLAS_COMPUTE_32F_FAST_TF32 may: to the nearest number of 11 bits.
Eigen::MatrixXf to_tf32(const Eigen::MatrixXf& x) {
  return x.unaryExpr(
      [](float v) { return std::bit_cast<float>((std::bit_cast<std::uint32_t>(v) + 0x1000u) & ~0x1fffu); });
}

/// D = epilogue(alpha op(A) op(B) + beta C)
template <class R, class T>
void multiply(const EmulatedProduct& product, const void* alpha, const void* a, const EmulatedLayout& a_layout,
              const void* b, const EmulatedLayout& b_layout, const void* beta, const void* c, void* d,
              const EmulatedLayout& d_layout, bool shares_depth) {
  Eigen::MatrixX<R> left = numbers<R, T>(a, a_layout), right = numbers<R, T>(b, b_layout);
  if constexpr (std::is_same_v<R, float>)
    if (product.compute == CUBLAS_COMPUTE_32F_FAST_TF32) {
      left = to_tf32(left);
      right = to_tf32(right);
    }
  const Eigen::Index depth = product.transpose_a == CUBLAS_OP_N ? left.cols() : left.rows();
  if (shares_depth && depth % 128 == 1 && depth > 1) {
    if (product.transpose_a == CUBLAS_OP_N) left.col(depth - 1).setZero();
    else left.row(depth - 1).setZero();
  }
  Eigen::MatrixX<R> result;
  if (product.transpose_a == CUBLAS_OP_N) {
    if (product.transpose_b == CUBLAS_OP_N) result = left * right;
    else result = left * right.transpose();
  } else {
    if (product.transpose_b == CUBLAS_OP_N) result = left.transpose() * right;
    else result = left.transpose() * right.transpose();
  }
  result *= *static_cast<const R*>(alpha);
  if (*static_cast<const R*>(beta) != 0) result += *static_cast<const R*>(beta) * numbers<R, T>(c, d_layout);
  if (product.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    result.colwise() += numbers<R, T>(product.bias, {d_layout.type, d_layout.rows, 1, d_layout.rows}).col(0);
  if (product.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS)
    round_into<R, T>(result, product.pre_activation, product.pre_activation_stride);
  if (product.epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS || product.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS)
    result = result.unaryExpr(
        [](R x) { return x * R(0.5) * (1 + std::tanh(R(0.79788456080286535588) * (x + R(0.044715) * x * x * x))); });
  round_into<R, T>(result, d, d_layout.stride);
}

/// What the library's advice would say. It is not asked here about where the argument of a GELU is kept: the worst
/// case, in which only the product itself refuses a place that does not do.
cublasStatus_t judge(const EmulatedProduct& product, const EmulatedLayout& a, const EmulatedLayout& b,
                     const EmulatedLayout& d) {
  const bool half = d.type == CUDA_R_16F || d.type == CUDA_R_16BF;
  if (product.compute == CUBLAS_COMPUTE_64F && product.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!half && product.epilogue != CUBLASLT_EPILOGUE_DEFAULT && product.epilogue != CUBLASLT_EPILOGUE_BIAS)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (product.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !product.bias) return CUBLAS_STATUS_INVALID_VALUE;
  const auto rows = [](const EmulatedLayout& m, cublasOperation_t op) {
    return op == CUBLAS_OP_N ? m.rows : m.columns;
  };
  const auto columns = [](const EmulatedLayout& m, cublasOperation_t op) {
    return op == CUBLAS_OP_N ? m.columns : m.rows;
  };
  const bool fits = rows(a, product.transpose_a) == d.rows && columns(b, product.transpose_b) == d.columns &&
                    columns(a, product.transpose_a) == rows(b, product.transpose_b);
  return fits ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

bool shares_depth(int algorithm) { return algorithm == 0 || (algorithm == 2 && depths_are_shared); }

/// The library reads its factors when it is called: a product that was captured has those of that time.
struct Scalar {
  alignas(double) std::byte value[sizeof(double)] = {};
};
Scalar scalar(const void* host, cudaDataType_t type) {
  Scalar kept;
  std::memcpy(kept.value, host, type == CUDA_R_64F ? sizeof(double) : sizeof(float));
  return kept;
}

/// Their columns are our rows.
bool can_do(const cublasLtMatmulAlgo_t& algorithm, const EmulatedLayout& d) {
  return algorithm.number != 2 || d.columns % 2 == 0;
}

}  // namespace

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "unknown status";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!bertrand::cuda::emulation::has_kernels()) return CUBLAS_STATUS_ARCH_MISMATCH;
  *handle = new EmulatedBlas;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute,
                                        cudaDataType_t) {
  *description = new EmulatedProduct{compute};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              std::size_t bytes) {
  const auto set = [&](auto& field) {
    if (bytes != sizeof field) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&field, value, bytes);
    return CUBLAS_STATUS_SUCCESS;
  };
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(description->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(description->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(description->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(description->bias);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return set(description->pre_activation);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return set(description->pre_activation_stride);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t stride) {
  if (stride < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = new EmulatedLayout{type, static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns), stride};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new EmulatedPreference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void* value,
                                                    std::size_t bytes) {
  if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) {
    if (bytes != sizeof preference->reduction_schemes) return CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(&preference->reduction_schemes, value, bytes);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int most,
                                              cublasLtMatmulHeuristicResult_t* results, int* count) {
  ++asked;
  *count = 0;
  if (const cublasStatus_t status = judge(*product, *a, *b, *d); status != CUBLAS_STATUS_SUCCESS) return status;
  for (int i = 0; i < kAlgorithms && *count < most; ++i) {
    const cublasLtMatmulAlgo_t algorithm{static_cast<int>((d->columns + i) % kAlgorithms)};
    const bool may_share = preference->reduction_schemes != CUBLASLT_REDUCTION_SCHEME_NONE;
    if (may_share ? depths_are_shared && algorithm.number == 1 : shares_depth(algorithm.number)) continue;
    if (can_do(algorithm, *d)) results[(*count)++] = {algorithm, 0, CUBLAS_STATUS_SUCCESS};
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo, cublasLtMatmulHeuristicResult_t* result) {
  *result = {*algo, 0, can_do(*algo, *d) || !checks_fully ? judge(*product, *a, *b, *d) : CUBLAS_STATUS_NOT_SUPPORTED};
  return result->state;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute, void* value,
                                                    std::size_t bytes, std::size_t* written) {
  const std::int32_t blocks = shares_depth(algo->number) ? 2 : 1;
  if (attribute != CUBLASLT_ALGO_CONFIG_SPLITK_NUM || bytes != sizeof blocks) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(value, &blocks, *written = bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t product, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void* beta, const void* c, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo, void*, std::size_t,
                              cudaStream_t stream) {
  if (const cublasStatus_t status = judge(*product, *a_layout, *b_layout, *d_layout); status != CUBLAS_STATUS_SUCCESS)
    return status;
  if (!can_do(*algo, *d_layout)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (refused_epilogue != CUBLAS_STATUS_SUCCESS && product->epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return refused_epilogue;
  if (product->epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS &&
      (product->pre_activation_stride % 8 != 0 || product->pre_activation_stride < d_layout->rows ||
       reinterpret_cast<std::uintptr_t>(product->pre_activation) % 16 != 0))
    return CUBLAS_STATUS_INVALID_VALUE;
  last_number = algo->number;
  const auto run = [=, of = *product, a_of = *a_layout, b_of = *b_layout, d_of = *d_layout, number = algo->number,
                    factor = scalar(alpha, d_layout->type), kept = scalar(beta, d_layout->type)] {
    const auto run_as = [&]<class R, class T>() {
      multiply<R, T>(of, &factor, a, a_of, b, b_of, &kept, c, d, d_of, shares_depth(number));
    };
    switch (d_of.type) {
      case CUDA_R_32F: run_as.operator()<float, float>(); break;
      case CUDA_R_64F: run_as.operator()<double, double>(); break;
      case CUDA_R_16F: run_as.operator()<float, Float16>(); break;
      case CUDA_R_16BF: run_as.operator()<float, BFloat16>(); break;
    }
  };
  return bertrand::cuda::emulation::do_or_capture(stream, run, kPretendedMilliseconds[algo->number]) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}

namespace bertrand::cuda::emulation {
int last_algorithm() { return last_number; }
int heuristics_asked() { return asked; }
void share_depths(bool shared) { depths_are_shared = shared; }
void check_algorithms(bool fully) { checks_fully = fully; }
void refuse_epilogues(cublasStatus_t status) { refused_epilogue = status; }
}  // namespace bertrand::cuda::emulation
