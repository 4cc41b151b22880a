// Wanted tells an op's backward which inputs want a gradient, and where it may write it to save a pass over memory.
//
// A closure may ignore all but operator[]: it returns new tensors, and the engine adds them up. If it asks into(), it
// gets one of three places and must write there:
//
//   1. the input is a leaf with a buffer (a parameter)            into() = {buffer, accumulate}
//        parameters.gradients()  ░░░░░[  dw  ]░░░░░               the first writer of a pass overwrites what an earlier
//                                        ▲                        step left there, the next ones add
//                                      matmul writes here
//   2. a gradient has gathered already, in memory that only the   into() = {that gradient, accumulate = true}
//      slot has and that was not the value's
//        slot.gradient  [  from the op's other user  ] += new     no third tensor is made for the sum
//   3. otherwise                                                  into() = {} : the op makes a new tensor
#pragma once
#include "autograd/variable.h"

namespace bertrand {

class Wanted {
 public:
  explicit Wanted(const std::vector<std::shared_ptr<GradientSlot>>& inputs) : inputs_(inputs), given_(inputs.size()) {}

  bool operator[](std::size_t input) const { return inputs_[input] != nullptr; }
  /// One of the three places above, for an input that wants a gradient.
  ops::Into into(std::size_t input);
  /// Case 1 if the buffer holds no gradient yet, else empty: for ops that overwrite and cannot add.
  Tensor fresh_buffer(std::size_t input);
  /// The gradient that lies in the slot itself, for an op whose backward is a backward() of its own and has left it
  /// there.
  Tensor gathered(std::size_t input);
  std::size_t size() const { return inputs_.size(); }
  /// The tensor that into(), fresh_buffer() or gathered() gave for `input`, or empty: the engine need not add it up.
  const Tensor& given(std::size_t input) const { return given_[input]; }

 private:
  const std::vector<std::shared_ptr<GradientSlot>>& inputs_;
  std::vector<Tensor> given_;
};

}  // namespace bertrand
