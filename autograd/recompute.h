// Activations that are computed again in place of being kept (Chen et al. 2016, "Training Deep Nets with Sublinear
// Memory Cost"): of a part of the model only the input stays in memory, and backward() computes the part a second time
// when it gets there. A third more arithmetic buys a memory that does not grow with what is inside of the part. The
// bits are those of a graph that keeps everything, because an op gives the same bits each time; dropout's masks too,
// since they follow from keys.
#pragma once
#include <functional>
#include <vector>

#include "autograd/variable.h"

namespace bertrand {

/// y = f(x), of which the graph keeps x alone. `parameters` are the other Variables that f reads and that may want a
/// gradient; they must be leaves, or Error(Failure::bug): what an op made of them is for f to compute. f is called
/// again by backward(), so whatever it captures must live until then and must not change.
Variable recomputed(const Variable& x, const std::vector<Variable>& parameters,
                    std::function<Variable(const Variable& x)> f);

/// While one of these lives, models on this thread compute every `every`-th of their parts again, the first one
/// included; 0 is none. A model asks for each part, in order.
class Recomputing {
 public:
  explicit Recomputing(int every);
  ~Recomputing();
  Recomputing(const Recomputing&) = delete;
  Recomputing& operator=(const Recomputing&) = delete;
  /// Whether the next part is one of them.
  static bool next_part();

 private:
  int previous_every_, previous_part_;
};

}  // namespace bertrand
