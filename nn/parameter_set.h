// A ParameterSet gives the parameters of a model memory: one flat tensor of values and one of gradients, of which every
// parameter is a view. Optimizers, clipping, checkpoints and collectives work on the flat tensors. It is the one place
// that chooses the type a model computes in.
//
//   values     [ embedding.weight | dense.weight | dense.bias | … ]     a Segment is one named part
//   gradients  [        the same places                           ]
//   masters    [        the same places, f32                      ]     the values themselves unless their type is half
//
// Frozen parameters come last and have no gradient: gradients end where the frozen values begin.
//
// A model in a half type has masters: the same numbers in f32, which keep the small steps of training that the half
// type would round away (Micikevicius et al. 2018). What is loaded, trained and saved is the masters.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"

namespace bertrand::nn {

class ParameterSet {
 public:
  struct Segment {
    std::string name;  ///< as on disk: bert.encoder.layer.0.attention.self.query.weight
    Shape shape;
    Dim begin = 0;    ///< first element in the flat tensors
    double rate = 1;  ///< the share of the learning rate that it gets; 0: frozen
    Dim count() const { return shape.elements(); }
  };

  struct Options {
    DType dtype = DType::f32;  ///< what the model computes in
    std::uint64_t seed = 42;
    bool initialize = true;  ///< false: values are zero; use it if weights are loaded next
    bool gradients = true;   ///< false: no memory for gradients and no graph; use it if nothing is trained
    /// The rate of a segment by its name; segments that share a parameter have the same. Empty: 1 for all.
    std::function<double(const std::string& name)> rate = {};
  };
  /// Gives every parameter of `model` memory on `backend` and its initial values: a function of (seed, name) alone, in
  /// half types rounded. `model` must outlive the set, and a parameter has the memory of the last set that took it.
  /// Throws Error(Failure::memory).
  ParameterSet(Module& model, Backend& backend, const Options& options);
  ParameterSet(Module& model, Backend& backend) : ParameterSet(model, backend, Options{}) {}

  /// What segments() would be of a set of `model`, without places and in the order of parameters(): takes no memory.
  static std::vector<Segment> segments_of(const Module& model);

  const std::vector<Segment>& segments() const { return segments_; }
  const Segment* find(std::string_view name) const;
  Tensor value(const Segment& segment) const { return values_.window(segment.begin, segment.shape); }
  Tensor master(const Segment& segment) const { return masters_.window(segment.begin, segment.shape); }
  /// The gradient of a segment that is trained.
  Tensor gradient(const Segment& segment) const { return gradients().window(segment.begin, segment.shape); }

  Backend& backend() const { return values_.backend(); }
  const Tensor& values() const { return values_; }  ///< flat; parameters begin at multiples of 16, gaps are 0
  /// flat, the same places, of compute_type; values() itself if it has that type
  const Tensor& masters() const { return masters_; }
  /// The part of a flat tensor of values or masters that is trained: that which gradients() has places for.
  Tensor trained(const Tensor& flat) const { return flat.window(0, {trained_end_}); }

  /// The flat gradients of what is trained, the same places, of the values' type. They are whole: a parameter that no
  /// backward pass has reached since zero_gradients() has gradient 0, so that no code reads the gradient of an earlier
  /// step. Throws Error(Failure::bug) if the set was made without gradients.
  const Tensor& gradients() const;
  /// Before a backward pass: forgets the gradients without touching memory; the first writer overwrites them.
  void zero_gradients();
  /// What gradients() does first; for code that holds the flat tensor already.
  void complete_gradients() const;

  /// The name of the first segment of `flat`, which has the places of values(), with an element that is not finite; or
  /// "".
  std::string first_non_finite(const Tensor& flat) const;

  /// After masters were written: rounds them to the values that the model computes with.
  void round_masters();

 private:
  /// Gives every segment its place. Returns where each parameter begins.
  std::vector<Dim> lay_out(const Module& model, const Options& options);
  void initialize(std::size_t segment, std::uint64_t seed);

  std::vector<Segment> segments_;
  std::vector<const Initial*> initials_;  // one for each segment
  std::vector<Parameter*> parameters_;
  Tensor values_, gradients_, masters_;
  Dim trained_end_ = 0;  // of what is trained, in the flat tensors
};

}  // namespace bertrand::nn
