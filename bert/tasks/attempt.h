// A reader of rows that goes on after a bad one, to name all of them.
#pragma once
#include <string>
#include <vector>

#include "io/error.h"

namespace bertrand::tasks {

/// Calls f(). If it throws Error(Failure::input), the message is kept in `bad` and the answer is false; without `bad`
/// the error passes.
template <class F>
bool attempt(std::vector<std::string>* bad, F&& f) {
  try {
    f();
    return true;
  } catch (const Error& error) {
    if (!bad || error.failure() != Failure::input) throw;
    bad->push_back(error.what());
    return false;
  }
}

}  // namespace bertrand::tasks
