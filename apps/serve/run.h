// serve's run: models loaded, a line that says where it listens, and requests until a signal.
#pragma once
#include "apps/serve/options.h"

namespace bertrand::serve {

/// Throws Error: what the flags or the models lack, or with --check what the server does.
void run(const Options& options);

}  // namespace bertrand::serve
