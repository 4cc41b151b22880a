// Matrix products. Tensors are row-major and cuBLAS is column-major: what it reads as a column-major matrix is the
// transpose of ours, so C = A · B is asked for as Cᵀ = Bᵀ · Aᵀ. The operands change places and nothing is ever transposed.
#include <bit>

#include "tensor/cuda/cuda_backend.h"
#include "tensor/cuda/products.h"

namespace bertrand::cuda {
namespace {

constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;  // bytes; what NVIDIA advises for Hopper
constexpr std::size_t kMostPlans = 4096;                       // batches of real text hardly repeat a number of tokens

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return CUDA_R_64F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}

/// The largest power of two, at most 256, that divides where all the operands begin.
unsigned common_alignment(const Operands& o) {
  const std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(o.a) | reinterpret_cast<std::uintptr_t>(o.b) | reinterpret_cast<std::uintptr_t>(o.bias) |
                              reinterpret_cast<std::uintptr_t>(o.out) | 256;
  return 1u << std::countr_zero(bits);
}

}  // namespace

void check_blas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) fail(Failure::memory, "out of memory: cuBLAS: {}", what);
  if (status != CUBLAS_STATUS_SUCCESS) fail(Failure::distributed, "cuda: cuBLAS: {}: status {}", what, static_cast<int>(status));
}

Plan::Plan(cublasLtHandle_t handle, const Product& p) : product_(p) {
  const cudaDataType_t type = data_type(p.dtype), scale_type = p.dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F;
  check_blas(cublasLtMatmulDescCreate(&description_, p.dtype == DType::f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, scale_type), "description");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check_blas(cublasLtMatmulDescSetAttribute(description_, attribute, &value, sizeof value), "attribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT);

  // A row-major [rows, columns] matrix in memory is a column-major columns × rows one.
  const auto layout = [&](cublasLtMatrixLayout_t& to, Dim rows, Dim columns) {
    check_blas(cublasLtMatrixLayoutCreate(&to, type, static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows), columns), "layout");
  };
  layout(a_, p.transpose_a ? p.depth : p.rows, p.transpose_a ? p.rows : p.depth);
  layout(b_, p.transpose_b ? p.columns : p.depth, p.transpose_b ? p.depth : p.columns);
  layout(out_, p.rows, p.columns);

  cublasLtMatmulPreference_t preference{};
  check_blas(cublasLtMatmulPreferenceCreate(&preference), "preference");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_blas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), "preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, p.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, p.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, p.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, p.alignment);
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, description_, b_, a_, out_, out_, preference, 1, &found_, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  possible_ = status == CUBLAS_STATUS_SUCCESS && count == 1;
}

Plan::~Plan() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, out_})
    if (layout) cublasLtMatrixLayoutDestroy(layout);
  if (description_) cublasLtMatmulDescDestroy(description_);
}

void Plan::run(cublasLtHandle_t handle, const Operands& o, void* workspace, cudaStream_t stream) {
  if (o.bias) check_blas(cublasLtMatmulDescSetAttribute(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &o.bias, sizeof o.bias), "bias");
  const float one = 1, add = product_.accumulate ? 1 : 0;
  const double wide_one = 1, wide_add = add;
  const bool wide = product_.dtype == DType::f64;
  check_blas(cublasLtMatmul(handle, description_, wide ? static_cast<const void*>(&wide_one) : &one, o.b, b_, o.a, a_, wide ? static_cast<const void*>(&wide_add) : &add,
                            o.out, out_, o.out, out_, &found_.algo, workspace, found_.workspaceSize, stream),
             "matmul");
}

Products::~Products() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

Plan& Products::plan(const Product& product) {
  if (plans_.size() >= kMostPlans && !plans_.contains(product)) plans_.clear();
  const auto [found, made] = plans_.try_emplace(product, handle_, product);
  return found->second;
}

void CudaBackend::gemm(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options) {
  if (out.elements() == 0) return;
  const Dim rows = out.shape()[0], columns = out.shape()[1], depth = a.shape()[options.transpose_a ? 0 : 1];
  if (depth == 0) {
    if (!options.accumulate) fill(out, 0);
    return;
  }
  const bool activated = options.activation != Unary::identity;
  const Tensor product_out = activated && options.pre_activation ? options.pre_activation : out;
  Operands operands{a.data(), b.data(), options.bias ? options.bias.data() : nullptr, product_out.data()};
  const auto plan_for = [&](bool bias, bool accumulate) -> Plan& {
    return products_->plan({rows, columns, depth, options.transpose_a, options.transpose_b, accumulate, bias, out.dtype(), common_alignment(operands)});
  };
  Plan* plan = &plan_for(static_cast<bool>(options.bias), options.accumulate);
  if (!plan->possible() && options.bias) {
    // No algorithm adds a bias here (f64): every row of the result begins as the bias, and the product is added.
    operands.bias = nullptr;
    fill(product_out, 0);
    binary(Binary::add, product_out, options.bias, product_out);
    plan = &plan_for(false, true);
  }
  if (!plan->possible()) fail(Failure::usage, "matmul: cuBLAS has no algorithm for {} [{}, {}] of depth {}", name_of(out.dtype()), rows, columns, depth);
  {
    const Workspace workspace(*this, static_cast<Dim>(plan->workspace_bytes()));
    plan->run(products_->handle(), operands, workspace.as<void>(), stream());
  }
  if (activated) unary(options.activation, product_out, out);
}

}  // namespace bertrand::cuda
