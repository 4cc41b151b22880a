// SIGTERM, SIGINT, SIGHUP and SIGUSR1 ask a run to save and stop. A second one stops it at once.
#pragma once
#include <chrono>
#include <string_view>

namespace bertrand::io {

/// What the first signal asks for. save: the program saves when it sees stop_requested(). leave: there is nothing to
/// save, so the work ends too.
enum class OnStop { save, leave };

/// A signal that comes so soon after the first is no second one: timeout(1) sends its own to the process and then to
/// its group, and mpirun passes on what the terminal has sent to all.
constexpr std::chrono::milliseconds kSameRequest{500};

/// From now on the first of them only raises a flag; a second ends the process with 128 + its number. A SIGHUP that was
/// ignored before (nohup) stays ignored. A pipe that nobody reads any more does not end the process.
void catch_stop_signals(OnStop on_stop = OnStop::save);
/// Whether one has come.
bool stop_requested();
/// Whether one has come and OnStop is `leave`, or there is a LeaveRequest. Long work asks now and then.
bool leave_requested();
/// While there is one, the work of this process is asked to leave as by a signal. Nobody waits for its result any more.
class LeaveRequest {
 public:
  LeaveRequest();
  ~LeaveRequest();
  LeaveRequest(const LeaveRequest&) = delete;
  LeaveRequest& operator=(const LeaveRequest&) = delete;
};
/// Throws Error(Failure::interrupted) "interrupted while <doing>: nothing was written" if leave_requested().
void leave_if_requested(std::string_view doing);

}  // namespace bertrand::io
