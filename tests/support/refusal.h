// What is said against what should not be.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "io/error.h"

namespace support {

/// The line of the Error that `body` throws, which must be of this kind; "" if it throws none.
template <class Body>
std::string refusal(bertrand::Failure failure, const Body& body) {
  try {
    body();
  } catch (const bertrand::Error& error) {
    CHECK(error.failure() == failure);
    return error.what();
  }
  return "";
}

}  // namespace support
