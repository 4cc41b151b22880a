// Exercise: an optimizer. Write one step of AdamW (Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization";
// Adam: Kingma and Ba 2015) as PyTorch has it: the decay λ is multiplied by α, and in the paper's algorithm 2 by the
// schedule alone. For each weight w with its gradient g, where t counts steps from 1:
//
//   m ← β1 m + (1 − β1) g                 a running mean of the gradient
//   v ← β2 v + (1 − β2) g²                and of its square
//   m̂ = m / (1 − β1ᵗ),  v̂ = v / (1 − β2ᵗ)  both began at 0, so the first ones are too small: this mends it
//   w ← w − α (m̂ / (√v̂ + ε) + λ w)        α: learning_rate, λ: weight_decay
//
// What is the first step of a weight that does not decay? (It does not depend on the size of its gradient.)
//
//   scripts/grade.sh adamw
#include "adamw/adamw.h"

#include <cmath>

void AdamW::step(std::vector<double>& w, const std::vector<double>& g, double learning_rate) {
  m.resize(w.size());
  v.resize(w.size());
  // your code
}
