// The memory of tensors.
#include "tensor/tensor.h"

#include "tensor/backend.h"

namespace bertrand {

Storage::Storage(Backend& backend, std::size_t bytes)
    : backend_(backend), bytes_(bytes), data_(backend.allocate(bytes)) {}
Storage::~Storage() { backend_.deallocate(data_, bytes_); }

// An empty Tensor comes from a gradient that nothing has reached, or from a layer whose parameters have no memory yet.
void Tensor::fail_without_value(const std::string& what) {
  fail(Failure::bug,
       "{} has no value; hint: a layer has parameters after a ParameterSet of it was made, and a Variable has a "
       "gradient after backward reached it",
       what);
}

}  // namespace bertrand
