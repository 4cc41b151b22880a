// What must hold for every row of the op table, on any backend. Each check reports to the test that calls it: the row,
// the type, the device, which check it is, the worst entry with what was got and expected, and the inputs there.
#pragma once
#include "support/op_cases.h"

namespace bertrand::testing {

/// How far results and gradients may be from what they are compared with: ‖difference‖ / ‖expected‖.
struct Tolerance {
  double result = 0, gradient = 0;
};

/// f64: every gradient against central differences, entry by entry for small inputs and for some entries of large ones,
/// and along directions.
void check_gradients(const OpCase& c, Backend& backend);

/// f64: every gradient against central differences along two random directions that every entry has a part in. Needs
/// few runs of the op: for devices that are slow.
void check_directions(const OpCase& c, Backend& backend);

/// f64: results against the row's formula; results and gradients against its meaning.
void check_definition(const OpCase& c, Backend& backend);

/// Results and gradients in `narrow` against those in f64 of the same inputs.
void check_against_f64(const OpCase& c, DType narrow, const Tolerance& tolerance, Backend& backend);

/// Results and gradients on one backend against those on another.
void check_against_backend(const OpCase& c, DType dtype, const Tolerance& tolerance, Backend& backend,
                           Backend& reference);

/// Computing twice gives the same bits.
void check_same_bits_twice(const OpCase& c, DType dtype, Backend& backend);

/// The op as a citizen of a graph, in f64: it leaves its inputs as they were; it records nothing under NoGrad; it gives
/// the same gradients when only some are wanted; it writes into buffers and adds to what is there; its inputs may be
/// values that are held nowhere else.
void check_in_graph(const OpCase& c, Backend& backend);

/// The result, then the gradient of every input of Σ result ∘ fixed random weights.
Arrays run_both_ways(const OpCase& c, DType dtype, Backend& backend, DType drawn_in = DType::f32);

}  // namespace bertrand::testing
