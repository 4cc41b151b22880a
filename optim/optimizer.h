// How parameters move: AdamW and LAMB over a ParameterSet. AdamW is LAMB with every trust ratio 1.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "nn/parameter_set.h"

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

/// Owns the moments: flat tensors beside the parameters' own.
class Optimizer {
 public:
  Optimizer(nn::ParameterSet& parameters, const Options& options);

  /// Clips by the global norm, updates values and moments. Returns the norm before clipping; throws
  /// Error(Failure::numerics) naming the parameter, before anything is changed, if it is not finite.
  double step(double learning_rate);

  std::int64_t steps_done() const { return steps_; }
  const Tensor& first_moments() const { return m_; }   ///< flat, as ParameterSet::values()
  const Tensor& second_moments() const { return v_; }  ///< flat
  /// After the moments were loaded from a checkpoint.
  void resume(std::int64_t steps_done) { steps_ = steps_done; }

 private:
  nn::ParameterSet& parameters_;
  Options options_;
  std::vector<UpdateSegment> segments_;
  Tensor m_, v_;
  std::int64_t steps_ = 0;
};

}  // namespace bertrand::optim
