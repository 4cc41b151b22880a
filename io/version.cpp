// The version that CMake knows.
#include "io/version.h"

namespace bertrand {

std::string_view version() { return BERTRAND_VERSION; }

}  // namespace bertrand
