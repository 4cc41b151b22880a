#include "support/op_cases.h"

namespace bertrand::testing {

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    for (const auto& family : {element_cases, product_cases, normalization_cases, attention_cases, loss_cases})
      for (OpCase& c : family()) all.push_back(std::move(c));
    return all;
  }();
  return cases;
}

}  // namespace bertrand::testing
