// How anything in this project fails: one exception type that knows which exit code its failure deserves.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace bertrand {

/// What kind of failure, numbered as the programs' exit codes.
enum class Failure : int {
  bug = 1,          ///< a broken promise inside the program
  usage = 2,        ///< wrong flags
  input = 3,        ///< bad input data
  model = 4,        ///< bad or missing checkpoint or model directory
  io = 5,           ///< the operating system refused a read or write
  numerics = 6,     ///< a loss or gradient that is not finite
  memory = 7,       ///< out of memory
  distributed = 8,  ///< another replica failed or went silent, or a GPU was lost
  interrupted = 75  ///< stopped on request; what can go on is saved, as a run, of other work nothing is written
};

/// One line: where, what was expected, what was found, what to do. `main` prints it after "error: ".
class Error : public std::runtime_error {
 public:
  Error(Failure failure, const std::string& message) : std::runtime_error(message), failure_(failure) {}
  Failure failure() const { return failure_; }

 private:
  Failure failure_;
};

/// Whether it was thrown because somebody asked to stop.
inline bool is_interruption(const std::exception& error) {
  const auto* const known = dynamic_cast<const Error*>(&error);
  return known && known->failure() == Failure::interrupted;
}

/// Throws Error(failure) with a formatted message.
template <class... Args>
[[noreturn]] void fail(Failure failure, fmt::format_string<Args...> message, Args&&... args) {
  throw Error(failure, fmt::format(message, std::forward<Args>(args)...));
}

/// Throws the error again with what to do about it, unless it says that already.
[[noreturn]] inline void fail_with_hint(const Error& error, const char* hint) {
  const std::string message = error.what();
  throw Error(error.failure(), message.find("; hint: ") == std::string::npos ? message + "; hint: " + hint : message);
}

/// Throws Error(Failure::bug) with a formatted message unless `ok`: for what only a mistake in the program can break.
template <class... Args>
void check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) throw Error(Failure::bug, fmt::format(message, std::forward<Args>(args)...));
}

}  // namespace bertrand
