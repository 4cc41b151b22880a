// Values as Python's json.dumps writes them, for files that must equal a Python program's to the byte.
#pragma once
#include <string>
#include <string_view>

namespace bertrand::io {

/// A text of valid UTF-8 in quotes, all that is not ASCII as \uXXXX.
std::string python_json(std::string_view text);
/// The shortest digits that read back to the same number, in the form of repr(float).
std::string python_json(double value);

}  // namespace bertrand::io
