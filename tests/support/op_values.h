// What the rows of the op table are made of: deterministic values, indices and masks.
#pragma once
#include <cstdint>
#include <vector>

#include "support/op_cases.h"

namespace bertrand::testing {

/// Deterministic values of a case's inputs: numbers that `drawn_in` holds too, so that types can be compared. Inputs
/// `wanted` says no to want no gradient; empty: all do.
Inputs make_inputs(const OpCase& c, DType dtype, Backend& backend, const std::vector<bool>& wanted = {},
                   DType drawn_in = DType::f32);

/// Uniform in [0, 1), a function of key alone.
Array uniform(Dim count, std::uint64_t key);
/// The same as a tensor that wants no gradient.
Tensor constant(const Shape& shape, DType dtype, std::uint64_t key, Backend& backend);
Tensor tensor(const Array& values, const Shape& shape, DType dtype, Backend& backend);

/// Row numbers below `rows`, some of them twice.
std::vector<std::int32_t> some_rows(Dim count, Dim rows);
/// A class for every row; with `ignore_some`, −1 for every fourth.
std::vector<std::int32_t> labels(Dim rows, Dim classes, bool ignore_some);
Tensor indices(const std::vector<std::int32_t>& values, Backend& backend);

/// A dropout with probability 0.2 whose row i is named 70 + i.
Dropout some_dropout(Dim rows, Backend& backend);
/// What that dropout multiplies columns [0, columns) of row `row` with, straight from Philox. `plane` is attention's
/// head.
Array multipliers(Dim row, std::uint32_t plane, Dim columns);
/// The same for rows [0, rows) of plane 0.
Array multipliers(const Shape& shape);
/// x ∘ multipliers(x.shape())
Variable masked(const Variable& x);

}  // namespace bertrand::testing
