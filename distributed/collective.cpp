#include "distributed/collective.h"

#include "tensor/profiler.h"
#include "tensor/run.h"

namespace bertrand::distributed {

void add_to_right(Backend& backend, const Tensor& left, const Tensor& right) {
  run(backend, [&](Kernels& k) { k.binary(Binary::add, right, left, right); });
}

void SoloCollective::all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) {
  const auto sum = add_siblings(mine, parts, [&](const Tensor& left, const Tensor& right) {
    const Span span(backend_, "all_reduce_sum", {.flops = 0, .bytes = 3.0 * static_cast<double>(right.bytes())});
    add_to_right(backend_, left, right);
  });
  check(sum.size() == 1 && sum[0].count == parts, "all_reduce_sum: the addends do not cover {} parts", parts);
  if (!sum[0].values.same_memory(out)) run(backend_, [&](Kernels& k) { k.cast(sum[0].values, out); });
}

}  // namespace bertrand::distributed
