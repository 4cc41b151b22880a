// What a file that a user names may be instead of what it should be, said before it is read for something else.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/error.h"

namespace bertrand::io {

/// What a name may stand for: a file, or as a model's a directory, too.
enum class Named { file, any };
/// "; did you mean NAME?" of what lies beside the one that is not there, or "".
std::string near_beside(const std::filesystem::path& absent, Named named = Named::file);
/// What a user may have meant by the name of what is not there, after "; ": several files, what a link leads to, the
/// nearest name beside it, or another directory; "" if nothing of it can be.
std::string hint_of_absent(const std::filesystem::path& absent, Named named = Named::file);

/// Throws Error(Failure::input) if the system's error number says that there is no such file to open, else
/// Error(Failure::io) with its reason.
[[noreturn]] void refuse_open(const std::filesystem::path& file, int error);

/// Throws Error(failure) if `file` is a directory, which to read would look like a failure of the disk; `what` is
/// what it should hold.
void refuse_directory(const std::filesystem::path& file, std::string_view what, Failure failure);

/// Bytes of a file of a model directory that is read whole, weights apart. JSON of so many bytes takes up to 0.8 GB,
/// some 23 times, when it is parsed.
constexpr std::uint64_t kMostSmallFile = std::uint64_t{1} << 25;
/// A whole file of `what`. Throws Error(Failure::model) for a directory, a pipe or a device, and for more than
/// kMostSmallFile bytes, else as read_file() does.
std::string read_small_file(const std::filesystem::path& file, std::string_view what);

/// Throws Error(Failure::input) as <file>:<line> at the first NUL of what should be text in UTF-8. The bytes come after
/// `lines_before` lines of the file; if there are none, they tell what else it looks like.
void refuse_nul(std::string_view bytes, const std::string& file, std::uint64_t lines_before = 0);

}  // namespace bertrand::io
