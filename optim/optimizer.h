// How parameters move: AdamW and LAMB over a ParameterSet. AdamW is LAMB with every trust ratio 1.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/parameter_set.h"
#include "optim/loss_scale.h"

namespace bertrand::optim {

enum class Method {
  adamw,         ///< Loshchilov and Hutter 2019: decoupled decay, bias correction
  adamw_google,  ///< google-research/bert: no bias correction
  lamb,          ///< You et al. 2020; the trust ratio on every variable (NVIDIA's TensorFlow trainer)
  lamb_decayed   ///< the trust ratio only on variables that decay (NVIDIA's PyTorch trainer)
};

struct Options {
  Method method = Method::adamw_google;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6;
  double weight_decay = 0.01;  ///< none on variables whose name contains "bias" or "LayerNorm"
  double clip_norm = 1.0;      ///< of all gradients together; 0 is off
};

/// Owns the moments: flat tensors beside the parameters' masters, of their type.
class Optimizer {
 public:
  Optimizer(nn::ParameterSet& parameters, const Options& options);

  /// Clips by the global norm, updates masters, values and moments. `gradients`, flat, are of the values' or the
  /// masters' type, and in f16 those of the scaled loss. Where their norm, or one of `losses` (f64, may be empty), is
  /// not finite nothing moves: in f16 the step is skipped, and counts as a step, though not for the bias correction;
  /// else, and where the loss scale has nowhere to go, no later step moves anything either. Waits for nothing; returns
  /// what became of the step, for read(): f64 [4] on the device.
  Tensor update(double learning_rate, const Tensor& gradients, const Tensor& losses = {});

  struct Report {
    double gradient_norm = 0;     ///< before clipping, of the loss without its scale
    LossScale::State loss_scale;  ///< after the step
    bool ended = false;           ///< whether this step, or one before, has ended the training
  };
  /// What update() returned, on the host; of every step once, in their order.
  Report read(std::span<const double, 4> numbers);
  /// Throws Error(Failure::numerics), naming the first parameter whose gradient is not finite.
  [[noreturn]] void refuse(const Report& report, const Tensor& gradients) const;

  /// The same for who waits for every step: returns the norm, and refuses where the training has ended.
  double step(double learning_rate, const Tensor& gradients);
  /// With the gradients of the parameters, which complete_gradients() must have made whole.
  double step(double learning_rate) { return step(learning_rate, parameters_.gradients()); }

  std::int64_t steps_done() const { return steps_; }   ///< skipped ones too
  const Tensor& first_moments() const { return m_; }   ///< flat, as ParameterSet::masters()
  const Tensor& second_moments() const { return v_; }  ///< flat
  /// What the loss must be multiplied by before backward.
  const LossScale& loss_scale() const { return loss_scale_; }
  /// After the moments were loaded from a checkpoint.
  void resume(std::int64_t steps_done, const LossScale::State& loss_scale = {});

 private:
  nn::ParameterSet& parameters_;
  Options options_;
  std::vector<UpdateSegment> segments_;
  Tensor m_, v_;
  LossScale loss_scale_;
  double scale_read_;  // after the last step that was read: that of the next one's gradients
  std::int64_t steps_ = 0;
};

}  // namespace bertrand::optim
