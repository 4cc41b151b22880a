// Matrix products, which cuBLASLt does: against the CPU's, and which algorithm is taken.
#include <algorithm>

#include "cuda_emulated/against_cpu.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::testing;

TEST_CASE("a product equals the CPU's, whatever is transposed, added, biased or activated") {
  for (const DType dtype : kFloating)
    for (const bool transpose_a : {false, true})
      for (const bool transpose_b : {false, true})
        for (const bool accumulate : {false, true})
          check_same(tolerance(dtype), [&](Backend& b) {
            const Tensor x = noise(transpose_a ? Shape{30, 7} : Shape{7, 30}, dtype, b, 1),
                         y = noise(transpose_b ? Shape{11, 30} : Shape{30, 11}, dtype, b, 2);
            const Tensor out = noise({7, 11}, dtype, b, 3);
            return ops::matmul(x, y,
                               {.transpose_a = transpose_a, .transpose_b = transpose_b, .into = {out, accumulate}});
          });
  for (const DType dtype : kFloating)
    for (const Unary activation : {Unary::identity, Unary::relu, Unary::tanh, Unary::gelu, Unary::gelu_tanh})
      for (const bool keep : {false, true})
        check_same(2 * tolerance(dtype), [&](Backend& b) {
          const auto [y, pre] = ops::linear_activation(noise({7, 30}, dtype, b, 1), noise({11, 30}, dtype, b, 2),
                                                       noise({11}, dtype, b, 3), activation, keep);
          return keep && activation != Unary::identity ? pre : y;
        });
}

TEST_CASE("GELU equals the CPU's whether the product's epilogue can compute it or not") {
  for (const DType dtype : kFloating)
    for (const Dim columns : {8, 11, 64})
      for (const bool keep : {false, true})
        for (const bool pre : {false, true}) {
          CAPTURE(columns);
          if (pre && !keep) continue;
          check_same(2 * tolerance(dtype), [&](Backend& b) {
            const auto h = ops::linear_activation(noise({7, 30}, dtype, b, 1), noise({columns, 30}, dtype, b, 2),
                                                  noise({columns}, dtype, b, 3), Unary::gelu_tanh, keep);
            return pre ? h.pre_activation : h.y;
          });
        }
}

TEST_CASE("an epilogue that is refused after it was advised becomes kernels after the product") {
  for (const cublasStatus_t status : {CUBLAS_STATUS_NOT_SUPPORTED, CUBLAS_STATUS_INVALID_VALUE}) {
    cuda::emulation::refuse_epilogues(status);
    for (const DType dtype : kFloating) {
      for (const Unary activation : {Unary::identity, Unary::gelu_tanh})
        check_same(2 * tolerance(dtype), [&](Backend& b) {
          return ops::linear_activation(noise({7, 30}, dtype, b, 1), noise({8, 30}, dtype, b, 2),
                                        noise({8}, dtype, b, 3), activation, false)
              .y;
        });
    }
  }
  cuda::emulation::refuse_epilogues(CUBLAS_STATUS_SUCCESS);
}

TEST_CASE("TF32 is a choice: its products are rounded to 11 bits, and only those of f32") {
  const auto exact = emulated_gpu(), rounded = emulated_gpu({.tf32 = true});
  const auto through = [](Backend& b, DType dtype) {
    return ops::to_host<double>(ops::matmul(noise({7, 30}, dtype, b, 1), noise({30, 11}, dtype, b, 2)));
  };
  const double apart = distance(through(*rounded, DType::f32), through(*exact, DType::f32));
  CHECK(apart > 1e-5);
  CHECK(apart < 1e-3);
  for (const DType dtype : {DType::f64, DType::bf16, DType::f16})
    CHECK(through(*rounded, dtype) == through(*exact, dtype));
}

TEST_CASE("the library is asked once for all numbers of tokens that are alike, whichever comes first") {
  for (const bool measured : {false, true})
    for (const Dim first : {65, 70, 72}) {
      CAPTURE(measured);
      CAPTURE(first);
      const auto gpu = emulated_gpu({.measured_products = measured});
      const Tensor weight = noise({24, 30}, DType::bf16, *gpu, 2), bias = noise({24}, DType::bf16, *gpu, 4);
      const auto algorithm_for = [&](Dim tokens) {
        ops::linear(noise({tokens, 30}, DType::bf16, *gpu, 1), weight, bias);
        return cuda::emulation::last_algorithm();
      };
      const int asked = cuda::emulation::heuristics_asked();
      CHECK(algorithm_for(first) == (measured ? 1 : 0));  // the fastest, or the advice for 72
      for (Dim tokens = 65; tokens <= 72; ++tokens) CHECK(algorithm_for(tokens) == (measured ? 1 : 0));
      CHECK(cuda::emulation::heuristics_asked() == asked + 1);
    }
}

TEST_CASE(
    "a product that the advice for those alike does not fit has advice of its own, also if only its run says so") {
  for (const bool check_says : {true, false}) {
    CAPTURE(check_says);
    cuda::emulation::check_algorithms(check_says);
    const auto gpu = emulated_gpu();
    const Tensor weight = noise({24, 30}, DType::bf16, *gpu, 2), bias = noise({24}, DType::bf16, *gpu, 4);
    const auto algorithm_for = [&](Dim tokens) {
      ops::linear(noise({tokens, 30}, DType::bf16, *gpu, 1), weight, bias);
      return cuda::emulation::last_algorithm();
    };
    const int asked = cuda::emulation::heuristics_asked();
    CHECK(algorithm_for(74) == 2);  // the advice for 80
    CHECK(algorithm_for(73) == 1);  // which cannot do this one
    CHECK(algorithm_for(73) == 1);
    CHECK(algorithm_for(76) == 2);
    CHECK(cuda::emulation::heuristics_asked() == asked + 2);
    // Without an epilogue there are no kernels to turn to: the product itself must run.
    const Tensor x = noise({73, 30}, DType::bf16, *gpu, 1);
    CHECK(distance(ops::to_host<double>(ops::matmul(x, weight, {.transpose_b = true})),
                   ops::to_host<double>(ops::linear(x, weight, ops::full({24}, 0, DType::bf16, *gpu)))) <= 5e-3);
    CHECK(cuda::emulation::last_algorithm() == 1);
  }
  cuda::emulation::check_algorithms(true);
}

TEST_CASE("an algorithm that would leave out the last term of a depth is not taken") {
  const auto added_up = [](Dim depth, Backend& gpu) {
    const Tensor a = ops::full({depth, 6}, 0, DType::bf16, gpu), b = ops::full({depth, 5}, 1, DType::bf16, gpu);
    ops::fill(a.rows(depth - 1, depth), 1);
    return std::ranges::count(ops::to_host<double>(ops::matmul(a, b, {.transpose_a = true})), 1) == 30;
  };
  for (const bool measured : {false, true})
    for (const Dim depth : {128, 129, 130, 257}) {
      CAPTURE(measured);
      CAPTURE(depth);
      const auto gpu = emulated_gpu({.measured_products = measured});
      CHECK(added_up(depth, *gpu));
      const bool shared = depth % 2 == 0 && !measured;  // the first advice for 6 rows shares the depth
      CHECK((cuda::emulation::last_algorithm() == 0) == shared);
    }
  cuda::emulation::share_depths(true);  // then only advice for a depth that nobody shares is of use
  CHECK(added_up(129, *emulated_gpu()));
  CHECK(cuda::emulation::last_algorithm() == 1);
  cuda::emulation::share_depths(false);
}

TEST_CASE("a backend that may measure takes the fastest algorithm, and adds what it measures no more than once") {
  for (const bool measured : {false, true}) {
    CAPTURE(measured);
    const auto gpu = emulated_gpu({.measured_products = measured});
    const Tensor weight = noise({24, 30}, DType::bf16, *gpu, 2), sum = noise({70, 24}, DType::bf16, *gpu, 3);
    const auto product = [&](Dim tokens, const ops::Into& into) {
      return ops::to_host<double>(
          ops::matmul(noise({tokens, 30}, DType::bf16, *gpu, 1), weight, {.transpose_b = true, .into = into}));
    };
    const auto fresh = product(70, {});
    CHECK(cuda::emulation::last_algorithm() == (measured ? 1 : 0));  // the second of three is the fastest
    CHECK(product(70, {}) == fresh);
    const auto before = ops::to_host<double>(sum), after = product(70, {sum, true});
    for (std::size_t i = 0; i < after.size(); ++i)
      CHECK(after[i] == doctest::Approx(before[i] + fresh[i]).epsilon(0.02).scale(1));
  }
}
