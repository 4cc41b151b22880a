// Rows picked by index.
#include "autograd/ops.h"
#include "autograd/wanted.h"

namespace bertrand {
namespace {
/// y[i] = table[rows[i]], dtable[r] = Σ dy[i] over i with rows[i] = r
Variable gather(const char* name, const Variable& table, const Tensor& rows) {
  return record(name, ops::gather(table.value(), rows), {table},
                [shape = table.shape(), rows](const Tensor& dy, Wanted& want) {
                  return Grads{ops::scatter_add(dy, rows, shape, want.into(0))};
                });
}
}  // namespace

Variable embedding(const Variable& table, const Tensor& ids) { return gather("embedding", table, ids); }
Variable gather_rows(const Variable& x, const Tensor& rows) { return gather("gather_rows", x, rows); }

}  // namespace bertrand
