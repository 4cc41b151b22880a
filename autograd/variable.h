// A Variable is a Tensor and the record of how it was made: what backward() (autograd/engine.h) needs to differentiate
// it.
//
//   x ──┐                     x, w, y   Variables: each a value and, if it wants a gradient, a GradientSlot
//       ├─ Node "mul" ── y    Node      the op that made y: the slots of its inputs, and how gradients flow back
//   w ──┘                               y's slot holds the Node, so y holds its history
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tensor/ops.h"

namespace bertrand {

struct Node;
class Variable;
class Wanted;

using Grads = std::vector<Tensor>;  ///< one for each input, in order; empty if none was wanted
/// Takes the gradient of an op's output, gives those of its inputs. `wanted` says which are needed (autograd/wanted.h).
using Backward = std::function<Grads(const Tensor& dy, Wanted& wanted)>;

/// Makes the Variable of an op's result and remembers how to differentiate it: the only door into the graph. If no
/// input wants a gradient, or under NoGrad, the closure and what it captured are dropped at once. A closure should
/// capture value()s: a Variable would keep its whole history, one op inside the other.
///
/// The values of inputs and result must not be written in place until backward() has passed, since the closure may have
/// captured them. backward() notices writes by ops:: and by an optimizer, and refuses the graph.
Variable record(const char* op, Tensor value, const std::vector<Variable>& inputs, Backward backward);

/// Where the gradient of one value gathers, and the op that made the value. Values and slots are apart: the graph links
/// slots, so that it keeps alive only those values that some closure captured.
struct GradientSlot {
  explicit GradientSlot(const Tensor& value) : shape(value.shape()), dtype(value.dtype()) {}

  const Shape shape;  ///< of the value, and so of its gradient
  const DType dtype;
  Tensor gradient;
  std::shared_ptr<Node> node;  ///< null for leaves
  bool spent = false;          ///< whether backward() has passed and taken the node away
  Tensor buffer;               ///< leaves only: where the gradient must be written, or empty
  bool written = false;        ///< leaves with a buffer: whether it holds a gradient
};

class Variable {
 public:
  Variable() = default;
  explicit Variable(Tensor value, bool requires_grad = false);

  explicit operator bool() const { return static_cast<bool>(value_); }
  /// Throws Error(Failure::bug) if there is none: a Parameter has a value once a ParameterSet has given it memory.
  const Tensor& value() const {
    if (!value_) fail_without_value();
    return value_;
  }
  const Shape& shape() const { return value().shape(); }
  bool requires_grad() const { return slot_ != nullptr; }
  /// What backward() left here; empty if nothing reached it.
  Tensor grad() const;
  void zero_grad();

  const std::shared_ptr<GradientSlot>& slot() const { return slot_; }

 protected:
  Tensor value_;
  std::shared_ptr<GradientSlot> slot_;  // null if no gradient is wanted

 private:
  [[noreturn]] static void fail_without_value();
  friend Variable record(const char*, Tensor, const std::vector<Variable>&, Backward);
};

/// One recorded op.
struct Node {
  const char* op = "";
  std::vector<std::shared_ptr<GradientSlot>> inputs;  ///< null if no gradient is wanted
  Backward backward;
  std::vector<MemoryWatch> values;  ///< watch the inputs, then the result, as they were when the op ran

  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();  // unlinks its ancestors in a loop, so that dropping a deep graph cannot overflow the stack
};

/// While one of these lives, no graph is recorded on this thread.
class NoGrad {
 public:
  NoGrad() : NoGrad(true) {}
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  static bool active();

 protected:
  explicit NoGrad(bool active);

 private:
  bool previous_;
};

/// Lifts an outer NoGrad: for a backward that computes a part of the graph again.
class Recording : private NoGrad {
 public:
  Recording() : NoGrad(false) {}
};

}  // namespace bertrand
