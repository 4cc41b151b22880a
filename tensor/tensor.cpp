// The memory of tensors.
#include "tensor/tensor.h"

#include "tensor/backend.h"

namespace bertrand {

Storage::Storage(Backend& backend, std::size_t bytes)
    : backend_(backend), bytes_(bytes), data_(backend.allocate(bytes)) {}
Storage::~Storage() { backend_.deallocate(data_, bytes_); }

}  // namespace bertrand
