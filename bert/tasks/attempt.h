// A reader of rows that goes on after a bad one, to name all of them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "io/error.h"

namespace bertrand::tasks {

/// What is wrong with each of some rows.
template <class Rows>
std::vector<std::string> messages_of(const Rows& rows) {
  std::vector<std::string> messages;
  for (const auto& row : rows) messages.push_back(row.message);
  return messages;
}

/// All rows of a file are bad, or too few are left without them.
class OnlyBadRows : public Error {
 public:
  /// The error's message is that of row `first`, with which those of this file begin, and `more`.
  explicit OnlyBadRows(std::vector<std::string> rows, std::size_t first = 0, const std::string& more = "")
      : Error(Failure::input, rows.at(first) + more), rows_(std::move(rows)) {}
  /// What is wrong with each.
  const std::vector<std::string>& rows() const { return rows_; }

 private:
  std::vector<std::string> rows_;
};

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
