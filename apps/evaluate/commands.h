// evaluate's commands and their flags: the official scores of files that any program has written.
#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace bertrand::evaluate {

/// Declares the commands on `app`. After parsing `chosen` does what was asked for.
void add_commands(CLI::App& app, std::function<void()>& chosen);

}  // namespace bertrand::evaluate
