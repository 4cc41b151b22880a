#include "support/op_cases.h"

#include <algorithm>
#include <cstdlib>

namespace bertrand::testing {

const std::vector<OpCase>& all_op_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    for (const auto& family : {element_cases, product_cases, normalization_cases, attention_cases, loss_cases})
      for (OpCase& c : family()) all.push_back(std::move(c));
    return all;
  }();
  return cases;
}

const std::vector<OpCase>& op_cases() {
  const char* const op = std::getenv("BERTRAND_OP");
  if (!op) return all_op_cases();
  static const std::vector<OpCase> cases = [op] {
    std::vector<OpCase> some;
    std::ranges::copy_if(all_op_cases(), std::back_inserter(some), [op](const OpCase& c) { return c.op == op; });
    return some;
  }();
  if (cases.empty())
    fail(Failure::usage, "BERTRAND_OP: expected an op with a row in tests/support/op_cases_*.cpp, got {}", op);
  return cases;
}

}  // namespace bertrand::testing
