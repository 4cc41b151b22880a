// Matrix products by cuBLASLt. How a shape is multiplied is decided once: a plan for each shape, and for all shapes
// that are alike one algorithm. It is the first that the library advises or, if the backend may measure, the fastest of
// the first few.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "tensor/backend.h"
#include "tensor/cuda/handles.h"

namespace bertrand::cuda {

class CudaBackend;

void check_blas(cublasStatus_t status, const char* what);

/// What the library does with a product while the numbers are in registers. The GELU is the tanh form.
enum class Epilogue { none, bias, bias_gelu, bias_gelu_kept };

/// What a plan depends on, in the words of row-major matrices: out [rows, columns] = op(a) · op(b) (+ out).
struct Product {
  Dim rows, columns, depth;
  bool transpose_a, transpose_b, accumulate;
  Epilogue epilogue;
  DType dtype;
  bool tf32;           ///< f32 operands may be rounded to 11 bits
  unsigned alignment;  ///< in bytes, at most 256: what the start of every operand is a multiple of
  auto key() const {
    return std::tie(rows, columns, depth, transpose_a, transpose_b, accumulate, epilogue, dtype, tf32, alignment);
  }
  bool operator<(const Product& other) const { return key() < other.key(); }
  /// Stands for the products that share an algorithm, those whose number of tokens differs by less than an eighth: the
  /// largest of them. The library is asked about this one, so that its advice does not depend on which came first.
  Product rough() const;
};

struct Operands {
  const void *a, *b;
  void* out;
  const void* bias = nullptr;      ///< [columns]
  void* pre_activation = nullptr;  ///< [rows, columns], of bias_gelu_kept
};

/// An algorithm of the library, and its workspace. It has a name because nvcc's front end needs one for what containers
/// hold.
struct Algorithm {
  cublasLtMatmulAlgo_t value{};
  std::size_t workspace_bytes = 0;
};

/// One product's description and algorithm.
class Plan {
 public:
  explicit Plan(const Product& product);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// The first few algorithms that the library advises, best first, without those that would leave terms out; empty if
  /// it cannot do this.
  std::vector<Algorithm> candidates(cublasLtHandle_t handle) const;
  /// Uses this one of its candidates from now on.
  void take(const Algorithm& algorithm);
  /// The same with the algorithm of a product like this; false if it does not fit.
  bool take_if_it_fits(cublasLtHandle_t handle, const Algorithm& of_another);
  /// The first advice for this very product, in place of what it has. It has none from now on if the library has no
  /// advice, or if it had this already.
  void take_own_advice(cublasLtHandle_t handle);

  bool possible() const { return possible_; }  ///< whether it has an algorithm
  std::size_t workspace_bytes() const { return algorithm_.workspace_bytes; }
  cublasStatus_t run(cublasLtHandle_t handle, const Operands& operands, void* workspace, cudaStream_t stream);

 private:
  void point_to(const void* bias, void* pre_activation) const;

  Product product_;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, out_ = nullptr;
  Algorithm algorithm_;
  bool possible_ = false, advised_ = false;
};

class Products {
 public:
  Products(CudaBackend& backend, bool measured) : backend_(backend), measured_(measured) {
    check_blas(cublasLtCreate(&handle_), "create");
  }
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// False, and nothing is written, if the library has no algorithm, or refuses those that it advised.
  bool run(const Product& product, const Operands& operands, cudaStream_t stream);

 private:
  Plan& plan(const Product& product, const Operands& operands, cudaStream_t stream);
  std::optional<Algorithm> choose(const Product& product, const Operands& operands, cudaStream_t stream);
  std::optional<Algorithm> fastest(std::span<const Algorithm> candidates, const Product& product, Operands operands,
                                   cudaStream_t stream);
  float milliseconds(Plan& plan, const Operands& operands, void* workspace, cudaStream_t stream);

  CudaBackend& backend_;
  bool measured_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Product, Plan> plans_;
  std::map<Product, std::optional<Algorithm>> choices_;  // of rough products; never dropped, so that they do not change
};

}  // namespace bertrand::cuda
