// Tensors are row-major and cuBLAS is column-major: what it reads as a column-major matrix is the transpose of ours, so
// C = A · B is asked for as Cᵀ = Bᵀ · Aᵀ. The operands change places and nothing is ever transposed.
#include "tensor/cuda/products.h"

#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "tensor/cuda/cuda_backend.h"

namespace bertrand::cuda {
namespace {

constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;  // bytes; what NVIDIA advises for Hopper
constexpr std::size_t kMostPlans = 4096;                       // batches of real text hardly repeat a number of tokens
constexpr int kCandidates = 8;                                 // pieces of advice that the library is asked for
constexpr int kTimedRuns = 3;

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f64: return CUDA_R_64F;
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}
cudaDataType_t scale_type(DType dtype) { return dtype == DType::f64 ? CUDA_R_64F : CUDA_R_32F; }
cublasComputeType_t compute_in(const Product& p) {
  if (p.dtype == DType::f64) return CUBLAS_COMPUTE_64F;
  return p.dtype == DType::f32 && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

cublasLtEpilogue_t in_library(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none: break;
    case Epilogue::bias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::bias_gelu: return CUBLASLT_EPILOGUE_GELU_BIAS;
    case Epilogue::bias_gelu_kept: return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

/// Rounded up to an eighth of the power of two below.
Dim rounded(Dim count) {
  const auto step = static_cast<Dim>(std::bit_floor(static_cast<std::uint64_t>(count)) / 8);
  return step > 1 ? (count + step - 1) / step * step : count;
}

/// Whether this algorithm may add up only a part of the depth. With cuBLASLt 13.1 on an H100 two blocks of threads left
/// out the last of 2 · 4,096 + 1 terms, in bf16 and f16, and none of + 2, + 3 or + 5: as if each took depth / blocks of
/// them, rounded down and then up to whole tiles. A tile has no fewer than 16, one instruction of the tensor cores.
bool leaves_terms_out(const cublasLtMatmulAlgo_t& algorithm, Dim depth) {
  std::int32_t blocks = 1;
  std::size_t written = 0;
  check_blas(cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &blocks, sizeof blocks,
                                                  &written),
             "algorithm");
  return blocks > 1 && depth % blocks != 0 && depth / blocks % 16 == 0;
}

template <class Value>
void set(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const Value& value) {
  check_blas(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), "attribute");
}

}  // namespace

void check_blas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_ALLOC_FAILED) fail(Failure::memory, "out of memory: cuBLAS: {}", what);
  if (status != CUBLAS_STATUS_SUCCESS)
    fail(Failure::distributed, "cuda: cuBLAS: {}: {}", what, cublasLtGetStatusName(status));
}

Product Product::rough() const {
  Product p = *this;  // the length of the rows of an operand decides what fits, so it stays
  if (!transpose_a) p.rows = rounded(rows);
  if (transpose_a && !transpose_b) p.depth = rounded(depth);
  return p;
}

Plan::Plan(const Product& p) : product_(p) {
  check_blas(cublasLtMatmulDescCreate(&description_, compute_in(p), scale_type(p.dtype)), "description");
  set(description_, CUBLASLT_MATMUL_DESC_TRANSA, p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_, CUBLASLT_MATMUL_DESC_TRANSB, p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE, in_library(p.epilogue));
  if (p.epilogue == Epilogue::bias_gelu_kept)
    set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, static_cast<std::int64_t>(p.columns));
  // Until a product runs, the library only reads the alignment of these pointers.
  point_to(reinterpret_cast<void*>(std::uintptr_t{p.alignment}), reinterpret_cast<void*>(std::uintptr_t{p.alignment}));

  // A row-major [rows, columns] matrix in memory is a column-major columns × rows one.
  const auto layout = [&](cublasLtMatrixLayout_t& to, Dim rows, Dim columns) {
    check_blas(cublasLtMatrixLayoutCreate(&to, data_type(p.dtype), static_cast<std::uint64_t>(columns),
                                          static_cast<std::uint64_t>(rows), columns),
               "layout");
  };
  layout(a_, p.transpose_a ? p.depth : p.rows, p.transpose_a ? p.rows : p.depth);
  layout(b_, p.transpose_b ? p.columns : p.depth, p.transpose_b ? p.depth : p.columns);
  layout(out_, p.rows, p.columns);
}

Plan::~Plan() {
  for (cublasLtMatrixLayout_t layout : {a_, b_, out_})
    if (layout) cublasLtMatrixLayoutDestroy(layout);
  if (description_) cublasLtMatmulDescDestroy(description_);
}

void Plan::point_to(const void* bias, void* pre_activation) const {
  if (product_.epilogue != Epilogue::none) set(description_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (product_.epilogue == Epilogue::bias_gelu_kept)
    set(description_, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, pre_activation);
}

std::vector<Algorithm> Plan::candidates(cublasLtHandle_t handle) const {
  cublasLtMatmulPreference_t preference{};
  check_blas(cublasLtMatmulPreferenceCreate(&preference), "preference");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_blas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value), "preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kMostWorkspace);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product_.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product_.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product_.alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product_.alignment);
  std::vector<Algorithm> algorithms;
  // A depth that several blocks share is added up in the compute type: else partial sums would be rounded to T, or
  // added in order of arrival, with other bits each time. If all of these leave terms out no depth is shared.
  for (const auto schemes : {CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE,
                             static_cast<int>(CUBLASLT_REDUCTION_SCHEME_NONE)}) {
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(schemes));
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> advice{};
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, description_, b_, a_, out_, out_, preference,
                                                                 kCandidates, advice.data(), &count);
    if (status != CUBLAS_STATUS_SUCCESS) break;
    for (const cublasLtMatmulHeuristicResult_t& one : std::span(advice).first(static_cast<std::size_t>(count)))
      if (one.state == CUBLAS_STATUS_SUCCESS && !leaves_terms_out(one.algo, product_.depth))
        algorithms.push_back({one.algo, one.workspaceSize});
    if (!algorithms.empty()) break;
  }
  cublasLtMatmulPreferenceDestroy(preference);
  return algorithms;
}

void Plan::take(const Algorithm& algorithm) {
  algorithm_ = algorithm;
  possible_ = true;
}

bool Plan::take_if_it_fits(cublasLtHandle_t handle, const Algorithm& of_another) {
  cublasLtMatmulHeuristicResult_t found{};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(handle, description_, b_, a_, out_, out_, &of_another.value, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found.workspaceSize > kMostWorkspace ||
      leaves_terms_out(of_another.value, product_.depth))
    return false;
  take({of_another.value, found.workspaceSize});
  return true;
}

void Plan::take_own_advice(cublasLtHandle_t handle) {
  possible_ = false;
  if (std::exchange(advised_, true)) return;
  if (const std::vector<Algorithm> first = candidates(handle); !first.empty()) take(first.front());
}

cublasStatus_t Plan::run(cublasLtHandle_t handle, const Operands& o, void* workspace, cudaStream_t stream) {
  point_to(o.bias, o.pre_activation);
  const float one = 1, add = product_.accumulate ? 1 : 0;
  const double wide_one = 1, wide_add = add;
  const bool wide = product_.dtype == DType::f64;
  return cublasLtMatmul(handle, description_, wide ? static_cast<const void*>(&wide_one) : &one, o.b, b_, o.a, a_,
                        wide ? static_cast<const void*>(&wide_add) : &add, o.out, out_, o.out, out_, &algorithm_.value,
                        workspace, algorithm_.workspace_bytes, stream);
}

Products::~Products() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

bool Products::run(const Product& product, const Operands& operands, cudaStream_t stream) {
  Plan& chosen = plan(product, operands, stream);
  while (chosen.possible()) {
    const Workspace workspace(backend_, static_cast<Dim>(chosen.workspace_bytes()));
    const cublasStatus_t status = chosen.run(handle_, operands, workspace.as<void>(), stream);
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE) {
      check_blas(status, "matmul");
      return true;
    }
    chosen.take_own_advice(handle_);  // that an algorithm fits is no promise of the library that it runs
  }
  return false;
}

Plan& Products::plan(const Product& product, const Operands& operands, cudaStream_t stream) {
  if (const auto known = plans_.find(product); known != plans_.end()) return known->second;
  if (plans_.size() >= kMostPlans) plans_.clear();
  const Product rough = product.rough();
  auto choice = choices_.find(rough);
  if (choice == choices_.end()) choice = choices_.emplace(rough, choose(product, operands, stream)).first;
  Plan& plan = plans_.try_emplace(product, product).first->second;
  if (!choice->second || !plan.take_if_it_fits(handle_, *choice->second)) plan.take_own_advice(handle_);
  return plan;
}

/// The algorithm of all products that are roughly this one. It stays, also if there was no memory to measure in. None
/// if the library has no advice.
std::optional<Algorithm> Products::choose(const Product& product, const Operands& operands, cudaStream_t stream) {
  const std::vector<Algorithm> candidates = Plan(product.rough()).candidates(handle_);
  if (measured_ && candidates.size() > 1)
    if (const auto measured = fastest(candidates, product, operands, stream)) return measured;
  return candidates.empty() ? std::nullopt : std::optional(candidates.front());
}

/// None if no candidate runs, or if there is no memory to measure in.
std::optional<Algorithm> Products::fastest(std::span<const Algorithm> candidates, const Product& product,
                                           Operands operands, cudaStream_t stream) {
  try {
    Plan plan(product);
    const Dim out_bytes = product.rows * product.columns * static_cast<Dim>(size_of(product.dtype));
    const Workspace workspace(backend_, static_cast<Dim>(kMostWorkspace)),
        scratch(backend_, product.accumulate ? out_bytes : 0);
    if (product.accumulate) operands.out = scratch.as<void>();  // the sum must be added to only once
    float least = std::numeric_limits<float>::infinity();
    std::optional<Algorithm> fastest;
    for (const Algorithm& candidate : candidates) {
      if (!plan.take_if_it_fits(handle_, candidate)) continue;
      const float time = milliseconds(plan, operands, workspace.as<void>(), stream);
      if (time < least) {
        least = time;
        fastest = candidate;
      }
    }
    return fastest;
  } catch (const Error& error) {
    if (error.failure() != Failure::memory) throw;
    return {};
  }
}

/// The time of one run on the GPU; infinite for an algorithm that does not run.
float Products::milliseconds(Plan& plan, const Operands& operands, void* workspace, cudaStream_t stream) {
  const auto run = [&] { return plan.run(handle_, operands, workspace, stream) == CUBLAS_STATUS_SUCCESS; };
  if (!run()) return std::numeric_limits<float>::infinity();
  const Event begin{Event::Kind::timed}, end{Event::Kind::timed};
  begin.record(stream);
  for (int i = 0; i < kTimedRuns; ++i)
    if (!run()) return std::numeric_limits<float>::infinity();
  end.record(stream);
  return end.milliseconds_since(begin) / kTimedRuns;
}

}  // namespace bertrand::cuda
