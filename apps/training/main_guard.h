// What every main does: parse flags, run, and turn what is thrown into one line and an exit code.
#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace bertrand::training {

/// Parses argv into `app` (`_` is accepted for `-` in flags; an unknown flag names the nearest one), then calls `body`.
/// Returns the exit code; prints "error: …" as one line on stderr.
int run_main(CLI::App& app, int argc, char** argv, const std::function<void()>& body);

}  // namespace bertrand::training
