// Matrix products: what cuBLASLt can do after a product goes into its epilogue, the rest into kernels of this project.
#include <bit>

#include "tensor/cuda/cuda_backend.h"
#include "tensor/cuda/products.h"

namespace bertrand::cuda {
namespace {

/// The largest power of two, at most 256, that divides the addresses of all operands.
unsigned common_alignment(const Operands& o) {
  std::uintptr_t bits = 256;
  for (const void* place :
       {o.a, o.b, static_cast<const void*>(o.out), o.bias, static_cast<const void*>(o.pre_activation)})
    bits |= reinterpret_cast<std::uintptr_t>(place);
  return 1u << std::countr_zero(bits);
}

/// Whether the GELU of the epilogue can be used: it is the tanh form, exact enough for a half type, and needs whole
/// packs in what it keeps.
bool gelu_fits(const Gemm& options, const Product& product) {
  const bool half = compute_type(product.dtype) != product.dtype;
  return half && options.activation == Unary::gelu_tanh && options.bias && product.columns % 8 == 0 &&
         product.alignment >= 16;
}

}  // namespace

void CudaBackend::gemm(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options) {
  const Dim rows = out.shape()[0], columns = out.shape()[1], depth = a.shape()[options.transpose_a ? 0 : 1];
  Product product{
      rows,        columns, depth, options.transpose_a, options.transpose_b, options.accumulate, Epilogue::none,
      out.dtype(), tf32_,   0};
  Operands operands{.a = a.data(), .b = b.data(), .out = out.data()};
  const auto run = [&](Epilogue epilogue) {
    product.epilogue = epilogue;
    product.alignment = common_alignment(operands);
    return products_->run(product, operands, stream());
  };
  if (out.elements() == 0) return;
  if (depth == 0) {
    if (!options.accumulate) fill(out, 0);
    return;
  }
  if (options.bias) operands.bias = options.bias.data();
  if (options.pre_activation) operands.pre_activation = options.pre_activation.data();
  product.alignment = common_alignment(operands);
  if (gelu_fits(options, product) && run(options.pre_activation ? Epilogue::bias_gelu_kept : Epilogue::bias_gelu))
    return;

  const bool activated = options.activation != Unary::identity;
  const Tensor linear = activated && options.pre_activation ? options.pre_activation : out;
  operands.out = linear.data();
  operands.pre_activation = nullptr;
  if (!options.bias || !run(Epilogue::bias)) {
    operands.bias = nullptr;
    if (options.bias) {  // no algorithm adds one here (f64): every row of the result begins as the bias
      fill(linear, 0);
      binary(Binary::add, linear, options.bias, linear);
      product.accumulate = true;
    }
    if (!run(Epilogue::none))
      fail(Failure::usage,
           "matmul: expected an algorithm of cuBLAS for {} [{}, {}] of depth {}, found none; hint: try another "
           "--precision",
           name_of(out.dtype()), rows, columns, depth);
  }
  if (activated) unary(options.activation, linear, out);
}

}  // namespace bertrand::cuda
