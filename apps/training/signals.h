// SIGTERM and SIGINT ask a run to save and stop; a second one stops it at once.
#pragma once

namespace bertrand::training {

/// From now on the first SIGTERM or SIGINT only raises a flag; a second ends the process with 143 or 130.
void catch_stop_signals();
/// Whether one has come.
bool stop_requested();

}  // namespace bertrand::training
