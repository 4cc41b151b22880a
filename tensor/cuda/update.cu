// The optimizer step: one launch over the flat parameters does all that a weight needs (two for LAMB, which needs
// norms). The host does not wait for it: the factor of clipping, the finite check and the loss scale are numbers on the
// GPU.
#include "tensor/cuda/reduce.h"
#include "tensor/cuda/update_plan.h"

namespace bertrand::cuda {
namespace {

constexpr Dim kChunk = 16384;  // elements of one block; also a block of LAMB's norms

/// The numbers in the formulas of tensor/update.h that are the same for the whole step.
struct Numbers {
  double gradient_factor, bias1, bias2;
  bool moves;  ///< whether anything does
};

/// The part of an Update that kernels use.
struct Rule {
  double learning_rate, beta1, beta2, epsilon, clip_norm, step, growth_interval, largest, least;
  bool bias_correction;
};

/// Computed by one thread, before the others need them; also updates the loss scale. state is null if there is none.
__global__ void numbers_kernel(Rule rule, const double* gradient_norm, double* state, Numbers* out) {
  const double scale = state ? state[0] : 1, norm = *gradient_norm / scale, t = rule.step - (state ? state[2] : 0);
  const bool finite = std::isfinite(*gradient_norm), ended = scale < rule.least;
  out->moves = finite && !ended;
  out->gradient_factor =
      (rule.clip_norm > 0 ? rule.clip_norm / (norm > rule.clip_norm ? norm : rule.clip_norm) : 1) / scale;
  out->bias1 = rule.bias_correction ? 1 - std::pow(rule.beta1, t) : 1;
  out->bias2 = rule.bias_correction ? 1 - std::pow(rule.beta2, t) : 1;
  if (!state || ended) return;
  if (finite) {
    if (++state[1] < rule.growth_interval) return;
    state[0] = 2 * scale < rule.largest ? 2 * scale : rule.largest;
  } else {
    state[0] = scale / 2;
    ++state[2];
  }
  state[1] = 0;
}

/// The factors of the formulas, rounded once.
template <class C>
struct Factors {
  C gradient, beta1, rest1, beta2, rest2, inverse_bias1, inverse_bias2, epsilon;

  __device__ Factors(const Rule& r, const Numbers& n)
      : gradient(static_cast<C>(n.gradient_factor)),
        beta1(static_cast<C>(r.beta1)),
        rest1(static_cast<C>(1 - r.beta1)),
        beta2(static_cast<C>(r.beta2)),
        rest2(static_cast<C>(1 - r.beta2)),
        inverse_bias1(static_cast<C>(1 / n.bias1)),
        inverse_bias2(static_cast<C>(1 / n.bias2)),
        epsilon(static_cast<C>(r.epsilon)) {}
  /// m̂ / (√v̂ + ε) + decay · w
  __device__ C direction(C m, C v, C w, C decay) const {
    return decay * w + m * inverse_bias1 / (std::sqrt(v * inverse_bias2) + epsilon);
  }
};

template <class V, class G>
struct Flat {
  Compute<V>* masters;
  V* values;  ///< the memory of the masters if both types are the same
  const G* gradients;
  Compute<V>*m, *v;

  __device__ void store_weights(Dim at, Dim left, const Pack<Compute<V>>& weights) const {
    store_pack(masters + at, left, weights);
    if constexpr (!std::is_same_v<V, Compute<V>>) {
      Pack<V> rounded;
      for (int i = 0; i < kPack; ++i) rounded[i] = weights[i];
      store_pack(values + at, left, rounded);
    }
  }
};

/// squares [2, chunks]: ‖w‖² and ‖u‖² of the chunks whose segment wants a trust ratio; their weights wait for
/// step_kernel.
template <class V, class G>
__global__ void update_kernel(Flat<V, G> flat, Rule rule, const Numbers* numbers, const UpdateChunk* chunks,
                              double* squares) {
  using C = Compute<V>;
  const UpdateChunk chunk = chunks[blockIdx.x];
  if (!numbers->moves) return;
  const Factors<C> f(rule, *numbers);
  const C decay = static_cast<C>(chunk.weight_decay), rate = static_cast<C>(rule.learning_rate * chunk.rate);
  C w_sum = 0, u_sum = 0;
  for (Dim at = chunk.begin + threadIdx.x * kPack; at < chunk.end; at += blockDim.x * kPack) {
    const Dim left = chunk.end - at;
    Pack<C> w = load_pack(flat.masters + at, left), m = load_pack(flat.m + at, left), v = load_pack(flat.v + at, left);
    const Pack<G> g = load_pack(flat.gradients + at, left);
    for (int i = 0; i < kPack; ++i) {
      const C gradient = static_cast<C>(g[i]) * f.gradient;
      m[i] = f.beta1 * m[i] + f.rest1 * gradient;
      v[i] = f.beta2 * v[i] + f.rest2 * (gradient * gradient);
      const C u = f.direction(m[i], v[i], w[i], decay);
      w_sum += w[i] * w[i];
      u_sum += u * u;  // 0 after the end: 0 / (0 + ε)
      w[i] -= rate * u;
    }
    store_pack(flat.m + at, left, m);
    store_pack(flat.v + at, left, v);
    if (!chunk.trust_ratio) flat.store_weights(at, left, w);
  }
  if (!chunk.trust_ratio) return;
  const double w_square = block_sum(static_cast<double>(w_sum)), u_square = block_sum(static_cast<double>(u_sum));
  if (threadIdx.x == 0) {
    squares[blockIdx.x] = w_square;
    squares[gridDim.x + blockIdx.x] = u_square;
  }
}

/// LAMB's second half: each block adds up the norms of its segment, always in one order, then steps.
template <class V, class G>
__global__ void step_kernel(Flat<V, G> flat, Rule rule, const Numbers* numbers, const UpdateChunk* chunks,
                            const double* squares) {
  using C = Compute<V>;
  const UpdateChunk chunk = chunks[blockIdx.x];
  if (!numbers->moves || !chunk.trust_ratio) return;
  double w_square = 0, u_square = 0;
  for (Dim i = chunk.first_of_segment + threadIdx.x; i < chunk.last_of_segment; i += blockDim.x) {
    w_square += squares[i];
    u_square += squares[gridDim.x + i];
  }
  const double w_norm = std::sqrt(block_sum(w_square)), u_norm = std::sqrt(block_sum(u_square));
  const double ratio = w_norm > 0 && u_norm > 0 ? w_norm / u_norm : 1;
  const Factors<C> f(rule, *numbers);
  const C decay = static_cast<C>(chunk.weight_decay), rate = static_cast<C>(ratio * (rule.learning_rate * chunk.rate));
  for (Dim at = chunk.begin + threadIdx.x * kPack; at < chunk.end; at += blockDim.x * kPack) {
    const Dim left = chunk.end - at;
    Pack<C> w = load_pack(flat.masters + at, left);
    const Pack<C> m = load_pack(flat.m + at, left), v = load_pack(flat.v + at, left);
    for (int i = 0; i < kPack; ++i) w[i] -= rate * f.direction(m[i], v[i], w[i], decay);
    flat.store_weights(at, left, w);
  }
}

}  // namespace

void UpdatePlan::follow(CudaBackend& backend, std::span<const UpdateSegment> segments) {
  const auto same = [](const UpdateSegment& a, const UpdateSegment& b) {
    return a.begin == b.begin && a.count == b.count && a.weight_decay == b.weight_decay &&
           a.trust_ratio == b.trust_ratio && a.rate == b.rate;
  };
  if (std::equal(segments.begin(), segments.end(), segments_.begin(), segments_.end(), same)) return;
  segments_.clear();  // until everything below has gone well
  trust_ratios_ = false;
  std::vector<UpdateChunk> chunks;
  for (const UpdateSegment& s : segments) {
    const auto first = static_cast<Dim>(chunks.size()), last = first + (s.count + kChunk - 1) / kChunk;
    trust_ratios_ |= s.trust_ratio;
    for (Dim at = 0; at < s.count; at += kChunk)
      chunks.push_back(
          {s.begin + at, s.begin + std::min(s.count, at + kChunk), first, last, s.weight_decay, s.trust_ratio, s.rate});
  }
  count_ = static_cast<Dim>(chunks.size());
  chunks_.emplace(backend, count_ * static_cast<Dim>(sizeof(UpdateChunk)));
  backend.copy_to_gpu(chunks.data(), *chunks_, chunks.size() * sizeof(UpdateChunk));
  segments_.assign(segments.begin(), segments.end());
}

void CudaBackend::update(const UpdateTensors& tensors, const Update& update, std::span<const UpdateSegment> segments) {
  update_plan_->follow(*this, segments);
  const LossScaling& scaling = update.loss_scale;
  const Rule rule{update.learning_rate,    update.beta1,     update.beta2,
                  update.epsilon,          update.clip_norm, static_cast<double>(update.step),
                  scaling.growth_interval, scaling.largest,  scaling.least,
                  update.bias_correction};
  const auto count = static_cast<unsigned>(update_plan_->count());
  const Workspace numbers(*this, sizeof(Numbers)),
      squares(*this, 2 * update_plan_->count() * static_cast<Dim>(sizeof(double)));
  launch(numbers_kernel, 1, 1, 0, stream(), rule, update.gradient_norm.as<double>(), scaling.state.as<double>(),
         numbers.as<Numbers>());
  const auto typed = [&]<class V, class G>() {
    const Flat<V, G> flat{in_compute<V>(tensors.masters), tensors.values.as<V>(), tensors.gradients.as<G>(),
                          in_compute<V>(tensors.m), in_compute<V>(tensors.v)};
    launch(update_kernel<V, G>, count, kThreads, 0, stream(), flat, rule, numbers.as<Numbers>(), update_plan_->chunks(),
           squares.as<double>());
    if (update_plan_->trust_ratios())
      launch(step_kernel<V, G>, count, kThreads, 0, stream(), flat, rule, numbers.as<Numbers>(), update_plan_->chunks(),
             squares.as<double>());
  };
  dispatch_real("update", tensors.values.dtype(), [&]<class V>() {
    if (tensors.gradients.dtype() == tensors.values.dtype()) typed.template operator()<V, V>();
    else typed.template operator()<V, Compute<V>>();
  });
}

}  // namespace bertrand::cuda
