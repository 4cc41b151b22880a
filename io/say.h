// What a program says: warnings on standard error, and on standard output, of those that train, lines for people or,
// under --log-format jsonl, a JSON object a line.
#pragma once
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

namespace bertrand::io {

enum class LineFormat { text, jsonl };

/// Sets the format of the whole process from now on; it is text at first.
void set_line_format(LineFormat format);
LineFormat line_format();

/// The text without what would end a line or steer a terminal: control characters become spaces. Names and contents of
/// files may have any of them.
std::string one_line(std::string text);

/// A line on standard error: what a command has done, or takes for granted. Nobody has to read it.
template <class... Args>
void tell(fmt::format_string<Args...> message, Args&&... args) {
  std::fputs((one_line(fmt::format(message, std::forward<Args>(args)...)) + "\n").c_str(), stderr);
}

/// "warning: …" as a line of its own, whatever is in the arguments.
template <class... Args>
std::string warning(fmt::format_string<Args...> message, Args&&... args) {
  return "warning: " + one_line(fmt::format(message, std::forward<Args>(args)...)) + "\n";
}
/// Prints it on standard error. Nobody has to read it.
template <class... Args>
void warn(fmt::format_string<Args...> message, Args&&... args) {
  std::fputs(warning(message, std::forward<Args>(args)...).c_str(), stderr);
}

/// The system's number of why standard output could not be written for the first time; 0 if it could.
int stdout_error();

/// A result on standard output. Throws Error(Failure::io) if it cannot be written.
void write_stdout(std::string_view text);

/// Whole lines; as JSON each that is not empty becomes {"event": "message", "text": …}. A pipe without a reader does
/// not end a run: the program says so when it ends.
void say(std::string_view lines);
/// A JSON object on one line, with the event as its first member: {"event": EVENT, …}. Nothing if lines are text.
void say_event(std::string_view event, std::string_view object);

}  // namespace bertrand::io
