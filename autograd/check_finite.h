// A search for the op that first makes a number that is not finite. Slow: it is for finding the cause afterwards.
#pragma once
#include "tensor/ops.h"

namespace bertrand {

/// While one of these lives, every value and gradient that is made on this thread is checked: the first that is not
/// finite throws Error(Failure::numerics), which names the op, forward or backward, and the element.
class CheckFinite {
 public:
  CheckFinite();
  ~CheckFinite();
  CheckFinite(const CheckFinite&) = delete;
  CheckFinite& operator=(const CheckFinite&) = delete;

 private:
  bool previous_;
};

/// What the engine calls for each tensor; it does nothing unless a CheckFinite lives. `pass`: forward or backward.
void check_finite(const Tensor& x, const char* op, const char* pass);

}  // namespace bertrand
