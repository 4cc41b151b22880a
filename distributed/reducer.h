// Adds up the gradients of a step over all replicas, in slices that leave while backward still computes the others.
//
// Backward finishes parameters roughly from the last to the first, so slices are cut from the end of the flat
// gradients, and each parts when everything behind its beginning is final. They are cut at the same places on every
// replica, also on those that have nothing to add.
#pragma once
#include <map>
#include <vector>

#include "distributed/collective.h"

namespace bertrand::distributed {

class Reducer {
 public:
  /// Elements of a slice: enough that its beginning costs nothing beside it (25 MB of f32).
  static constexpr Dim kSlice = Dim{6} << 20;

  explicit Reducer(Collective& collective, Dim slice = kSlice) : collective_(collective), slice_(slice) {}

  /// What is summed; all flat and of the same places.
  struct Step {
    std::int64_t parts = 1;       ///< of the whole step
    std::vector<Addend> addends;  ///< of this replica, in order
    Tensor sum;                   ///< of all; may be the last addend
    /// Where the last addend is being computed, or empty; another memory than the addend's only where the type is, too:
    /// then it is copied there slice by slice.
    Tensor last;
  };
  void begin(Step step);
  /// This part of `last` is final: a parameter's own gradient. Ignored where it is none.
  void ready(const Tensor& part);
  /// All of it is final. Returns when the sum is there.
  void finish();

 private:
  /// Sends off [begin, end_), the next slice.
  void start(Dim begin);

  Collective& collective_;
  const Dim slice_;
  Step step_;
  Dim end_ = 0;                     // of what has not left
  Dim final_from_ = 0;              // everything from here to the end is final
  std::map<Dim, Dim> final_parts_;  // before that: end → begin
};

}  // namespace bertrand::distributed
