// Numbers out of range, for each op that chooses by numbers from a tensor: what must be said on every device.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tensor/ops.h"

namespace bertrand::testing {

/// The message of the error that compute() or the download after it throws; "no error" if there is none.
template <class Compute>
std::string refusal_of(const Compute& compute) {
  try {
    ops::to_host<double>(compute());
  } catch (const Error& error) {
    CHECK(error.failure() == Failure::bug);
    return error.what();
  }
  return "no error";
}

/// Numbers i32 [n] on the device.
using Numbers = std::vector<std::int32_t>;
inline Tensor on_device(const Numbers& numbers, Backend& backend) {
  return ops::from_host(numbers, {static_cast<Dim>(numbers.size())}, backend);
}

// Each op is called with one number out of range, at the first and at the last place. Afterwards it works as before.

inline void check_bad_rows(Backend& backend) {
  const Tensor table = ops::full({5, 3}, 1, DType::f32, backend), dy = ops::full({4, 3}, 1, DType::f32, backend);
  const auto gather = [&](const Numbers& rows) {
    return refusal_of([&] { return ops::gather(table, on_device(rows, backend)); });
  };
  const auto scatter = [&](const Numbers& rows) {
    return refusal_of([&] { return ops::scatter_add(dy, on_device(rows, backend), {5, 3}); });
  };
  CHECK(gather({5, 0, 1, 4}) == "gather: row number 0 is 5, expected 0 to 4");
  CHECK(gather({0, 4, 1, -1}) == "gather: row number 3 is -1, expected 0 to 4");
  CHECK(gather({0, 4, 1, 1'000'000'000}) == "gather: row number 3 is 1000000000, expected 0 to 4");
  CHECK(gather({0, 4, 4, 0}) == "no error");
  CHECK(scatter({-7, 0, 1, 4}) == "scatter_add: row number 0 is -7, expected 0 to 4");
  CHECK(scatter({0, 4, 1, 5}) == "scatter_add: row number 3 is 5, expected 0 to 4");
  CHECK(scatter({0, 4, 4, 0}) == "no error");
}

inline void check_bad_labels(Backend& backend) {
  const Tensor logits = ops::full({4, 3}, 1, DType::f32, backend), log_sum = ops::full({4}, 2, DType::f32, backend),
               one = ops::full({1}, 1, DType::f32, backend);
  const auto loss = [&](const Numbers& labels) {
    return refusal_of([&] { return ops::cross_entropy(logits, on_device(labels, backend), 1).loss; });
  };
  const auto slope = [&](const Numbers& labels) {
    return refusal_of([&] { return ops::cross_entropy_backward(logits, on_device(labels, backend), 1, log_sum, one); });
  };
  const std::string also = ", or a negative one for a row without a label";
  CHECK(loss({7, 0, 1, 2}) == "cross_entropy: label 0 is 7, expected 0 to 2" + also);
  CHECK(loss({-1, 0, 1, 3}) == "cross_entropy: label 3 is 3, expected 0 to 2" + also);
  CHECK(loss({-1, 0, 2, -100}) == "no error");
  CHECK(slope({3, 0, 1, 2}) == "cross_entropy_backward: label 0 is 3, expected 0 to 2" + also);
  CHECK(slope({-1, 0, 1, 7}) == "cross_entropy_backward: label 3 is 7, expected 0 to 2" + also);
  CHECK(slope({-1, 0, 2, 0}) == "no error");
}

inline void check_bad_offsets(Backend& backend) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor qkv = ops::full({6, 3 * 32}, 0.5, dtype, backend);
    const auto options = [&](const Numbers& offsets) {
      return Attention{.offsets = on_device(offsets, backend), .heads = 2, .longest = 4};
    };
    const ops::Attended saved = ops::attention(qkv, options({0, 4, 6}));
    const auto forward = [&](const Numbers& offsets) {
      return refusal_of([&] { return ops::attention(qkv, options(offsets)).context; });
    };
    const auto backward = [&](const Numbers& offsets) {
      return refusal_of([&] { return ops::attention_backward(qkv, options(offsets), saved, saved.context); });
    };
    CHECK(forward({1, 4, 6}) == "attention: offset 0 is 1, expected 0 to 0");
    CHECK(forward({0, 4, 7}) == "attention: offset 2 is 7, expected 6 to 6");
    CHECK(forward({0, 3, 5}) == "attention: offset 2 is 5, expected 6 to 6");
    CHECK(forward({0, 5, 6}) == "attention: offset 1 is 5, expected 0 to 4");
    CHECK(forward({0, 4, 3, 6}) == "attention: offset 2 is 3, expected 4 to 6");
    CHECK(forward({0, 4, 6}) == "no error");
    CHECK(backward({-1, 3, 6}) == "attention_backward: offset 0 is -1, expected 0 to 0");
    CHECK(backward({0, 4, 100}) == "attention_backward: offset 2 is 100, expected 6 to 6");
    CHECK(backward({0, 4, 4, 6}) == "no error");
  }
}

inline void check_bad_indices(Backend& backend) {
  check_bad_rows(backend);
  check_bad_labels(backend);
  check_bad_offsets(backend);
}

}  // namespace bertrand::testing
