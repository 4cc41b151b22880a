#include "autograd/check_finite.h"

#include <utility>

namespace bertrand {
namespace {

thread_local bool checking = false;

}  // namespace

CheckFinite::CheckFinite() : previous_(std::exchange(checking, true)) {}
CheckFinite::~CheckFinite() { checking = previous_; }

void check_finite(const Tensor& x, const char* op, const char* pass) {
  if (!checking || !is_floating(x.dtype())) return;
  const Dim at = ops::first_non_finite(x);
  if (at >= 0)
    fail(Failure::numerics, "op {}: {}: element {} of {}: expected a finite number, got {}", op, pass, at, x.shape(),
         ops::item(x.window(at, {1})));
}

}  // namespace bertrand
