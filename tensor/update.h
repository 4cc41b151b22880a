// The optimizer step that kernels do over the flat parameters: its formula, its options, and dynamic loss scaling.
#pragma once
#include <cstdint>

#include "tensor/tensor.h"

namespace bertrand {

/// A run of the flat parameters that shares its options: one named variable.
struct UpdateSegment {
  Dim begin = 0, count = 0;
  double weight_decay = 0;
  bool trust_ratio = false;  ///< LAMB: scale the step by ‖w‖ / ‖update‖
  double rate = 1;           ///< share of the learning rate
};

/// Dynamic loss scaling (Micikevicius et al. 2018): f16 ends at 6e-8, so backward starts from `scale` instead of 1. The
/// state lives on the device, and no step has to wait for the host to know it.
///   scale < least:               it has ended: neither the state nor a weight ever moves again
///   else ‖gradient‖ not finite:  scale ← scale / 2, good ← 0, skipped ← skipped + 1
///   else:                        good ← good + 1, and if that is growth_interval:
///                                scale ← min(2 scale, largest), good ← 0
struct LossScaling {
  Tensor state = {};  ///< f64 [3]: scale, good steps in a row, steps skipped; empty: the scale is 1
  double growth_interval = 2000;
  double largest = 0x1p32;
  double least = 0;
};

/// The flat tensors of an optimizer step, all with the same places.
struct UpdateTensors {
  Tensor masters;    ///< w, Compute
  Tensor values;     ///< receives w, rounded to the model's type; the masters themselves if both types are the same
  Tensor gradients;  ///< in either type
  Tensor m, v;       ///< Compute
};

/// One optimizer step over the flat parameters, with everything the host knows. A norm that is not finite, or a loss
/// scale that has ended, changes no weight and no moment; else, before the loss scale's state changes, with t = step −
/// skipped:
///   g ← gradient · clip / scale,  clip = clip_norm / max(‖gradient‖ / scale, clip_norm)   (clip_norm 0: no clipping)
///   m ← β1 m + (1−β1) g,  v ← β2 v + (1−β2) g²
///   u ← (m / bias1) / (√(v / bias2) + ε) + weight_decay · w,  bias = 1 − β^t or, without bias_correction, 1
///   w ← w − learning_rate · rate · ratio · u,  ratio = ‖w‖/‖u‖ if trust_ratio and both are positive, else 1
struct Update {
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-6;
  bool bias_correction = false;
  std::int64_t step = 1;  ///< counted from 1, skipped ones too
  double clip_norm = 0;
  Tensor gradient_norm = {};  ///< f64 [1] on the device: ‖gradient‖ as the gradients are, scaled
  LossScaling loss_scale = {};
};

}  // namespace bertrand
