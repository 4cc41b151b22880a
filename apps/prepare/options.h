// prepare's commands and their flags.
#pragma once
#include <functional>

namespace CLI {
class App;
}

namespace bertrand::prepare {

/// Declares the commands: sentences, tokens, records, corpus, dump, squad, vocab. The one that is named when `app` is
/// parsed is put into `chosen`; calling that runs it, and throws Error.
void add_commands(CLI::App& app, std::function<void()>& chosen);

}  // namespace bertrand::prepare
