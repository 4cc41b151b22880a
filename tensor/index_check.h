// Numbers in a tensor that choose a row, a class or a place: what is said if one is out of range, and how the CPU looks
// for it. On a GPU kernels look themselves (tensor/cuda/index_check.h).
#pragma once
#include <algorithm>
#include <cstdint>

#include "io/error.h"
#include "tensor/shape.h"

namespace bertrand {

/// Which numbers are checked, of static life.
struct IndexKind {
  const char* op;
  const char* name;       ///< "row number"
  const char* also = "";  ///< what else is allowed: ", or a negative one …"
};
inline constexpr IndexKind kGatherRows{"gather", "row number"};
inline constexpr IndexKind kScatterRows{"scatter_add", "row number"};
inline constexpr IndexKind kLabels{"cross_entropy", "label", ", or a negative one for a row without a label"};
inline constexpr IndexKind kLabelsBackward{"cross_entropy_backward", "label",
                                           ", or a negative one for a row without a label"};
inline constexpr IndexKind kOffsets{"attention", "offset"};
inline constexpr IndexKind kOffsetsBackward{"attention_backward", "offset"};

/// The number at `index` is `value` and should be in [least, most].
struct BadIndex {
  Dim index, value, least, most;
};
[[noreturn]] inline void refuse(const IndexKind& kind, const BadIndex& bad) {
  fail(Failure::bug, "{}: {} {} is {}, expected {} to {}{}", kind.op, kind.name, bad.index, bad.value, bad.least,
       bad.most, kind.also);
}

/// The range of offset i, the one before it given: sequences follow each other without a gap, none is longer than
/// `longest`, and the last ends with the last token.
constexpr BadIndex offset_range(Dim i, Dim value, Dim before, Dim sequences, Dim tokens, Dim longest) {
  if (i == 0) return {i, value, 0, sequences == 0 ? tokens : 0};
  const Dim farthest = before + longest < tokens ? before + longest : tokens;
  return {i, value, i == sequences ? tokens : before, farthest};
}

/// Throws Error(Failure::bug) unless each of `count` numbers is in [least, end).
inline void check_indices(const IndexKind& kind, const std::int32_t* numbers, Dim count, std::int32_t least, Dim end) {
  const std::int32_t* const bad =
      std::find_if(numbers, numbers + count, [&](std::int32_t number) { return number < least || number >= end; });
  if (bad != numbers + count) refuse(kind, {bad - numbers, *bad, std::max(least, 0), end - 1});
}
/// The same for the offsets of packed sequences.
inline void check_offsets(const IndexKind& kind, const std::int32_t* offsets, Dim sequences, Dim tokens, Dim longest) {
  for (Dim i = 0; i <= sequences; ++i) {
    const BadIndex range = offset_range(i, offsets[i], i == 0 ? 0 : offsets[i - 1], sequences, tokens, longest);
    if (range.value < range.least || range.value > range.most) refuse(kind, range);
  }
}

}  // namespace bertrand
