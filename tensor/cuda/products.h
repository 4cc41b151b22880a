// Matrix products by cuBLASLt: which algorithm a shape takes is asked once and kept.
#pragma once
#include <map>
#include <tuple>

#include "tensor/backend.h"
#include "tensor/cuda/launch.h"

namespace bertrand::cuda {

void check_blas(cublasStatus_t status, const char* what);

/// What a plan depends on, in the words of row-major matrices: out [rows, columns] = op(a) · op(b) (+ out) (+ bias).
struct Product {
  Dim rows, columns, depth;
  bool transpose_a, transpose_b, accumulate, bias;
  DType dtype;
  unsigned alignment;  ///< of the worst placed operand, in bytes, at most 256
  auto key() const { return std::tie(rows, columns, depth, transpose_a, transpose_b, accumulate, bias, dtype, alignment); }
  bool operator<(const Product& other) const { return key() < other.key(); }
};

struct Operands {
  const void *a, *b, *bias;
  void* out;
};

/// One product's description and algorithm.
class Plan {
 public:
  Plan(cublasLtHandle_t handle, const Product& product);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  bool possible() const { return possible_; }  ///< whether the library has an algorithm
  std::size_t workspace_bytes() const { return found_.workspaceSize; }
  void run(cublasLtHandle_t handle, const Operands& operands, void* workspace, cudaStream_t stream);

 private:
  Product product_;
  cublasLtMatmulDesc_t description_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, out_ = nullptr;
  cublasLtMatmulHeuristicResult_t found_{};
  bool possible_ = false;
};

class Products {
 public:
  Products() { check_blas(cublasLtCreate(&handle_), "create"); }
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  cublasLtHandle_t handle() const { return handle_; }
  Plan& plan(const Product& product);

 private:
  cublasLtHandle_t handle_ = nullptr;
  std::map<Product, Plan> plans_;
};

}  // namespace bertrand::cuda
