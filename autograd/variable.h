// A Variable is a Tensor plus how to differentiate what made it.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "tensor/ops.h"

namespace bertrand {

struct Node;
class Variable;
class Wanted;

using Grads = std::vector<Tensor>;  // one per input, in order; an empty Tensor where none was wanted
/// Takes the gradient of an op's output, gives those of its inputs.
using Backward = std::function<Grads(const Tensor& dy, Wanted& wanted)>;

/// Wraps an op's result, remembering how to differentiate it: the only door into the graph. With no input wanting a
/// gradient, or under NoGrad, the closure and what it captured are dropped at once.
Variable record(const char* op, Tensor value, const std::vector<Variable>& inputs, Backward backward);

/// Where the gradient of one value gathers, and the op that made the value. Values and slots are apart, so that the
/// graph keeps alive only those values that some closure captured.
struct GradientSlot {
  Shape shape;
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
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  bool requires_grad() const { return slot_ != nullptr; }
  /// What backward() left here; empty if nothing reached it.
  Tensor grad() const;
  void zero_grad();

  const std::shared_ptr<GradientSlot>& slot() const { return slot_; }

 protected:
  Tensor value_;
  std::shared_ptr<GradientSlot> slot_;  // null where no gradient is wanted

  friend Variable record(const char*, Tensor, const std::vector<Variable>&, Backward);
};

/// Which inputs want a gradient, and where it may be put to save a pass over memory.
class Wanted {
 public:
  explicit Wanted(const std::vector<std::shared_ptr<GradientSlot>>& inputs) : inputs_(inputs), given_(inputs.size()) {}

  bool operator[](std::size_t input) const { return inputs_[input] != nullptr; }
  /// Where the gradient of `input` is to be written: its buffer, or (accumulating) a gradient that nobody else sees, or
  /// empty for a new tensor. Asking spares a pass over memory and is optional; who asks must write there.
  ops::Into into(std::size_t input);
  /// The buffer of `input` where it holds no gradient yet, else empty: for ops that overwrite and cannot add.
  Tensor fresh_buffer(std::size_t input);
  /// What was handed out for `input`, or empty.
  const Tensor& given(std::size_t input) const { return given_[input]; }

 private:
  const std::vector<std::shared_ptr<GradientSlot>>& inputs_;
  std::vector<Tensor> given_;
};

struct Node {
  const char* op;
  std::vector<std::shared_ptr<GradientSlot>> inputs;  // null where no gradient is wanted
  Backward backward;

  Node(const char* op_name, std::vector<std::shared_ptr<GradientSlot>> op_inputs, Backward op_backward);
  ~Node();  // unlinks its ancestors in a loop, so that dropping a deep graph cannot overflow the stack
};

/// Fills the gradients of every leaf that `loss` (one element) depends on, adding to what is there, and takes the graph
/// apart as it passes. `gradient` is that of the loss itself (a loss scale), one element; empty: 1. Throws
/// Error(Failure::bug) where an earlier backward() has taken a part of the graph away, and where an op gives gradients
/// of the wrong number or shape.
void backward(const Variable& loss, const Tensor& gradient = {});

/// No graph is recorded on this thread while one of these lives.
class NoGrad {
 public:
  NoGrad();
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
  static bool active();

 private:
  bool previous_;
};

/// Every value and gradient made on this thread is checked while one of these lives: the first that is not finite
/// throws Error(Failure::numerics) naming op, forward or backward, and element. Slow; for finding out after the fact.
class CheckFinite {
 public:
  CheckFinite();
  ~CheckFinite();
  CheckFinite(const CheckFinite&) = delete;
  CheckFinite& operator=(const CheckFinite&) = delete;

 private:
  bool previous_;
};

}  // namespace bertrand
