// The optimizer step: everything that happens to a weight in one pass over memory (two for LAMB, which needs norms).
#include <cmath>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/lanes.h"
#include "tensor/cpu/tree.h"

namespace bertrand::cpu {
namespace {

constexpr Dim kChunk = 16384;  // elements a piece of work; also a block of LAMB's norms

/// What of tensor/update.h's formulas is one number for the whole step, in double.
struct Numbers {
  double gradient_factor, bias1 = 1, bias2 = 1;

  static Numbers of(const Update& u) {
    const auto* state = u.loss_scale.state ? u.loss_scale.state.as<double>() : nullptr;
    const double scale = state ? state[0] : 1, norm = u.gradient_norm.as<double>()[0] / scale;
    Numbers numbers{.gradient_factor = (u.clip_norm > 0 ? u.clip_norm / std::max(norm, u.clip_norm) : 1) / scale};
    if (!u.bias_correction) return numbers;
    const double t = static_cast<double>(u.step) - (state ? state[2] : 0);
    numbers.bias1 = 1 - std::pow(u.beta1, t);
    numbers.bias2 = 1 - std::pow(u.beta2, t);
    return numbers;
  }
};

bool has_ended(const LossScaling& scaling) { return scaling.state && scaling.state.as<double>()[0] < scaling.least; }

void advance(const LossScaling& scaling, bool finite) {
  if (!scaling.state) return;
  auto& [scale, good, skipped] = *scaling.state.as<double[3]>();
  skipped += finite ? 0 : 1;
  good = finite ? good + 1 : 0;
  if (!finite) scale /= 2;
  if (good < scaling.growth_interval) return;
  scale = std::min(2 * scale, scaling.largest);
  good = 0;
}

/// The factors of the formulas, rounded once.
template <class T>
struct Factors {
  Lanes<T> gradient, beta1, rest1, beta2, rest2, inverse_bias1, inverse_bias2, epsilon;

  Factors(const Update& u, const Numbers& n)
      : gradient(static_cast<T>(n.gradient_factor)),
        beta1(static_cast<T>(u.beta1)),
        rest1(static_cast<T>(1 - u.beta1)),
        beta2(static_cast<T>(u.beta2)),
        rest2(static_cast<T>(1 - u.beta2)),
        inverse_bias1(static_cast<T>(1 / n.bias1)),
        inverse_bias2(static_cast<T>(1 / n.bias2)),
        epsilon(static_cast<T>(u.epsilon)) {}

  Lanes<T> first_moment(const Lanes<T>& m, const Lanes<T>& g) const { return fma(beta1, m, rest1 * g); }
  Lanes<T> second_moment(const Lanes<T>& v, const Lanes<T>& g) const { return fma(beta2, v, rest2 * (g * g)); }
  /// m̂ / (√v̂ + ε) + decay · w
  Lanes<T> direction(const Lanes<T>& m, const Lanes<T>& v, const Lanes<T>& w, const Lanes<T>& decay) const {
    return fma(decay, w, m * inverse_bias1 / (sqrt(v * inverse_bias2) + epsilon));
  }
};

struct Chunk {
  const UpdateSegment* segment;
  Dim begin, end;
};

std::vector<Chunk> cut(std::span<const UpdateSegment> segments) {
  std::vector<Chunk> chunks;
  for (const UpdateSegment& s : segments)
    for (Dim at = 0; at < s.count; at += kChunk)
      chunks.push_back({&s, s.begin + at, s.begin + std::min(s.count, at + kChunk)});
  return chunks;
}

/// LAMB: the learning rate of each chunk, times ‖w‖ / ‖u‖ of its segment, given the sums of squares of each chunk.
/// Those of chunks without a trust ratio are not used.
std::vector<double> trusted_rates(const std::vector<Chunk>& chunks, std::vector<double> w_squares,
                                  std::vector<double> u_squares, double learning_rate) {
  std::vector<double> rates(chunks.size());
  for (std::size_t begin = 0, end; begin < chunks.size(); begin = end) {
    for (end = begin; end < chunks.size() && chunks[end].segment == chunks[begin].segment;) ++end;
    const double w_norm = std::sqrt(tree_sum(&w_squares[begin], static_cast<Dim>(end - begin)));
    const double u_norm = std::sqrt(tree_sum(&u_squares[begin], static_cast<Dim>(end - begin)));
    const double ratio = w_norm > 0 && u_norm > 0 ? w_norm / u_norm : 1;
    std::fill(rates.begin() + static_cast<std::ptrdiff_t>(begin), rates.begin() + static_cast<std::ptrdiff_t>(end),
              ratio * (learning_rate * chunks[begin].segment->rate));
  }
  return rates;
}

/// The flat tensors as a kernel meets them.
template <class V>
struct Flat {
  using T = Compute<V>;
  T *w, *m, *v;
  V* values;

  explicit Flat(const UpdateTensors& tensors)
      : w(tensors.masters.as<T>()), m(tensors.m.as<T>()), v(tensors.v.as<T>()), values(tensors.values.as<V>()) {}

  void store_weight(const Lanes<T>& weight, Dim i, Dim n) const {
    weight.store(w + i, n);
    if constexpr (!std::is_same_v<V, T>) weight.store(values + i, n);
  }
};

/// LAMB's step of one chunk, from the moments that the first pass has stored.
template <class V, class T = Compute<V>>
void trusted_step(const Flat<V>& flat, const Factors<T>& f, const Chunk& chunk, double rate) {
  const Lanes<T> decay(static_cast<T>(chunk.segment->weight_decay)), step(static_cast<T>(-rate));
  for_lanes<T>(chunk.end - chunk.begin, [&](Dim i, Dim n) {
    i += chunk.begin;
    const auto weight = Lanes<T>::load(flat.w + i, n);
    const auto u = f.direction(Lanes<T>::load(flat.m + i, n), Lanes<T>::load(flat.v + i, n), weight, decay);
    flat.store_weight(fma(step, u, weight), i, n);
  });
}

}  // namespace

template <class V, class G>
void CpuBackend::update_typed(const UpdateTensors& tensors, const Update& update,
                              std::span<const UpdateSegment> segments) {
  using T = Compute<V>;
  const Factors<T> f(update, Numbers::of(update));
  const Flat<V> flat(tensors);
  const G* const g = tensors.gradients.as<G>();
  const std::vector<Chunk> chunks = cut(segments);
  std::vector<double> w_squares(chunks.size()), u_squares(chunks.size());

  pool_.run(std::ssize(chunks), [&](Dim piece, int) {
    const auto index = static_cast<std::size_t>(piece);
    const Chunk& chunk = chunks[index];
    const Lanes<T> decay(static_cast<T>(chunk.segment->weight_decay)),
        step(static_cast<T>(-update.learning_rate * chunk.segment->rate));
    Lanes<T> w_sum(T(0)), u_sum(T(0));
    for_lanes<T>(chunk.end - chunk.begin, [&](Dim i, Dim n) {
      i += chunk.begin;
      const auto weight = Lanes<T>::load(flat.w + i, n), gradient = Lanes<T>::load(g + i, n) * f.gradient;
      const auto first = f.first_moment(Lanes<T>::load(flat.m + i, n), gradient);
      const auto second = f.second_moment(Lanes<T>::load(flat.v + i, n), gradient);
      const auto u = f.direction(first, second, weight, decay);
      first.store(flat.m + i, n);
      second.store(flat.v + i, n);
      if (chunk.segment->trust_ratio) {
        w_sum = fma(weight, weight, w_sum);
        u_sum = fma(u, u, u_sum);  // 0 in the padding: 0 / (0 + ε)
      } else {
        flat.store_weight(fma(step, u, weight), i, n);
      }
    });
    w_squares[index] = static_cast<double>(cpu::sum(w_sum));
    u_squares[index] = static_cast<double>(cpu::sum(u_sum));
  });

  const auto rates = trusted_rates(chunks, std::move(w_squares), std::move(u_squares), update.learning_rate);
  pool_.run(std::ssize(chunks), [&](Dim piece, int) {
    const auto index = static_cast<std::size_t>(piece);
    if (chunks[index].segment->trust_ratio) trusted_step(flat, f, chunks[index], rates[index]);
  });
}

void CpuBackend::update(const UpdateTensors& tensors, const Update& update, std::span<const UpdateSegment> segments) {
  if (has_ended(update.loss_scale)) return;
  const bool finite = std::isfinite(update.gradient_norm.as<double>()[0]);
  if (finite)
    dispatch_real("update", tensors.values.dtype(), [&]<class V>() {
      if (tensors.gradients.dtype() == tensors.values.dtype())  // NOLINT(bugprone-branch-clone): not of half types
        update_typed<V, V>(tensors, update, segments);
      else update_typed<V, Compute<V>>(tensors, update, segments);
    });
  advance(update.loss_scale, finite);
}

}  // namespace bertrand::cpu
