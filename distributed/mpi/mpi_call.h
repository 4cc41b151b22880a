// What MPI answers to a call, as our errors.
#pragma once
#include <string>

namespace bertrand::distributed {

/// What MPI says of a code that it returned.
std::string text_of(int code);
/// Throws Error(Failure::distributed) unless the call succeeded.
void check_mpi(int code, const char* call);

}  // namespace bertrand::distributed
