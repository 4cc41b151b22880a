// SIGTERM, SIGINT and SIGUSR1 ask a run to save and stop; a second one stops it at once.
#pragma once

namespace bertrand::io {

/// From now on the first of them only raises a flag; a second ends the process with 128 + its number.
void catch_stop_signals();
/// Whether one has come.
bool stop_requested();

}  // namespace bertrand::io
