#include "tensor/shape.h"

void bertrand::Shape::refuse_product() const {
  fail(Failure::bug, "shape: expected dimensions whose product is below 2^59, got {}", *this);
}

fmt::format_context::iterator fmt::formatter<bertrand::Shape>::format(const bertrand::Shape& shape,
                                                                      format_context& context) const {
  return fmt::format_to(context.out(), "[{}]", fmt::join(shape.dims(), ", "));
}
