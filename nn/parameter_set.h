// All parameters of a model as views of one flat tensor of values and one of gradients. Optimizers, clipping,
// checkpoints and collectives work on ranges of them. The one place that chooses the type a model computes in.
//
// A model in a half type has masters beside its values: the same numbers in f32, which keep the small steps of training
// that the half type would round away (Micikevicius et al. 2018). What is loaded, trained and saved is the masters.
#pragma once
#include <cstdint>
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
    Dim begin = 0;  ///< first element in the flat tensors
    Dim count() const { return shape.elements(); }
  };

  /// Gives every parameter of `model` memory on `backend`, and its initial values: a function of (seed, name) alone, in
  /// half types rounded. With `initialize` false the values are zero, for whoever loads them anyway.
  struct Options {
    DType dtype = DType::f32;  ///< what the model computes in
    std::uint64_t seed = 42;
    bool initialize = true;
  };
  ParameterSet(Module& model, Backend& backend, const Options& options);
  ParameterSet(Module& model, Backend& backend) : ParameterSet(model, backend, Options{}) {}

  const std::vector<Segment>& segments() const { return segments_; }
  const Segment* find(std::string_view name) const;
  Tensor value(const Segment& segment) const { return values_.window(segment.begin, segment.shape); }
  Tensor master(const Segment& segment) const { return masters_.window(segment.begin, segment.shape); }
  Tensor gradient(const Segment& segment) const { return gradients_.window(segment.begin, segment.shape); }

  Backend& backend() const { return values_.backend(); }
  const Tensor& values() const { return values_; }        ///< flat; parameters begin at multiples of 16, gaps are 0
  const Tensor& gradients() const { return gradients_; }  ///< flat, the same places, the values' type
  const Tensor& masters() const {
    return masters_;
  }  ///< flat, the same places, compute_type; values() where it has that type
  Dim trainable() const { return trainable_; }  ///< elements without the gaps

  /// Before a backward pass: forgets the gradients without touching memory; the first writer overwrites.
  void zero_gradients();
  /// After it: parameters that no gradient reached get zeros.
  void complete_gradients();
  /// The name of the first segment with an element that is not finite, or ""; `flat` has the places of values().
  std::string first_non_finite(const Tensor& flat) const;

  /// After masters were written: rounds them to the values that the model computes with.
  void round_masters();

  /// Draws the initial values of one segment again (a head that a checkpoint did not have).
  void initialize(const Segment& segment);

 private:
  std::vector<Segment> segments_;
  std::vector<const Initial*> initials_;  // of each segment
  std::vector<Parameter*> parameters_;
  Tensor values_, gradients_, masters_;
  Dim trainable_ = 0;
  std::uint64_t seed_;
};

}  // namespace bertrand::nn
