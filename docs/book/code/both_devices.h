// Runs one op, forward and backward, on the processor (its `Lanes` kernels) and on the emulated GPU (its CUDA kernels),
// and prints what comes out beside what a plain loop says.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "autograd/operators.h"
#include "tensor/backends.h"

namespace book {

using Row = std::vector<double>;

/// Six numbers a line.
inline void print(const char* who, const Row& row) {
  std::printf("%-12s", who);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0 && i % 6 == 0) std::printf("\n%12s", "");
    std::printf("%10.6f", std::abs(row[i]) < 5e-7 ? 0 : row[i]);  // no -0.000000
  }
  std::printf("\n");
}

/// The result, then the gradient of each input, by a plain loop.
using Rows = std::vector<Row>;

struct Input {
  Row values;
  bertrand::Shape shape;
};

/// Prints `by_hand` and what each device makes of `op`, of which `dy` is the gradient. Ends the program unless all
/// agree to 12 digits.
inline void compare(const std::vector<const char*>& names, const Rows& by_hand, const std::vector<Input>& inputs,
                    const Row& dy,
                    const std::function<bertrand::Variable(const std::vector<bertrand::Variable>&)>& op) {
  using namespace bertrand;
  const auto cpu = open_cpu({.threads = 1}), gpu = open_cuda({.emulated = true});
  std::vector<Rows> by_device;
  for (Backend* const backend : {cpu.get(), gpu.get()}) {
    std::vector<Variable> leaves;
    for (const Input& input : inputs)
      leaves.emplace_back(ops::from_host(input.values, input.shape, *backend), /*requires_grad=*/true);
    const Variable y = op(leaves);
    backward(sum(y * Variable(ops::from_host(dy, y.shape(), *backend))));  // so that dy is the gradient of y
    Rows rows{ops::to_host<double>(y.value())};
    for (const Variable& leaf : leaves) rows.push_back(ops::to_host<double>(leaf.grad()));
    by_device.push_back(rows);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::printf("%s\n", names[i]);
    print("  by hand", by_hand[i]);
    print("  Lanes", by_device[0][i]);
    print("  CUDA", by_device[1][i]);
    for (const Rows& rows : by_device)
      for (std::size_t k = 0; k < by_hand[i].size(); ++k)
        if (!(std::abs(rows[i][k] - by_hand[i][k]) < 1e-12)) {
          std::printf("the numbers differ\n");
          std::exit(1);
        }
  }
}

}  // namespace book
