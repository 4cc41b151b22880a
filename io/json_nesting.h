// Against JSON from elsewhere that is nested so deep that whatever walks through it would run out of stack.
#pragma once
#include <string>

#include "io/error.h"

namespace bertrand::io {

/// What nlohmann's parse() is to call for every value: throws Error(Failure::model) naming `file` beyond 64 levels.
inline auto refuse_deep_nesting(const std::string& file) {
  return [file](int depth, auto, auto&) {
    if (depth > 64) fail(Failure::model, "{}: expected at most 64 levels of values in each other, got more", file);
    return true;
  };
}

}  // namespace bertrand::io
