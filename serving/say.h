// Messages of a server that runs.
#pragma once
#include <cstdio>
#include <string>

#include "io/say.h"

namespace bertrand::serving {

/// Writes a line to standard error. The server goes on if nobody can read it, which fmt::print() would throw for.
inline void say(const std::string& line) { std::fputs((io::one_line(line) + "\n").c_str(), stderr); }

}  // namespace bertrand::serving
