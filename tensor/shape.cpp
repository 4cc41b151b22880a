#include "tensor/shape.h"

fmt::format_context::iterator fmt::formatter<bertrand::Shape>::format(const bertrand::Shape& shape,
                                                                      format_context& context) const {
  return fmt::format_to(context.out(), "[{}]", fmt::join(shape.dims(), ", "));
}
