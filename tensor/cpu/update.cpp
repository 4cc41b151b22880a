// The optimizer step: everything that happens to a weight in one pass over memory (two for LAMB, which needs norms).
#include <cmath>

#include "tensor/cpu/cpu_backend.h"
#include "tensor/cpu/lanes.h"
#include "tensor/cpu/tree.h"

namespace bertrand::cpu {
namespace {

constexpr Dim kChunk = 16384;  // elements a piece of work; also a leaf of LAMB's norms

/// The factors of tensor/backend.h's formula, rounded once.
template <class T>
struct Factors {
  Lanes<T> clip, beta1, rest1, beta2, rest2, inverse_bias1, inverse_bias2, epsilon;

  Factors(const Update& u, double clip_factor)
      : clip(static_cast<T>(clip_factor)), beta1(static_cast<T>(u.beta1)), rest1(static_cast<T>(1 - u.beta1)),
        beta2(static_cast<T>(u.beta2)), rest2(static_cast<T>(1 - u.beta2)), inverse_bias1(static_cast<T>(1 / u.bias1)),
        inverse_bias2(static_cast<T>(1 / u.bias2)), epsilon(static_cast<T>(u.epsilon)) {}

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
    for (Dim at = 0; at < s.count; at += kChunk) chunks.push_back({&s, s.begin + at, s.begin + std::min(s.count, at + kChunk)});
  return chunks;
}

}  // namespace

void CpuBackend::update(const Tensor& values, const Tensor& gradients, const Tensor& m_tensor, const Tensor& v_tensor, const Update& update,
                        std::span<const UpdateSegment> segments) {
  dispatch_real("update", values.dtype(), [&]<class T>() {
    double clip = 1;
    if (update.clip_norm > 0) clip = update.clip_norm / std::max(elements<double>(update.gradient_norm)[0], update.clip_norm);
    const Factors<T> f(update, clip);
    T *const w = writable<T>(values), *const m = writable<T>(m_tensor), *const v = writable<T>(v_tensor);
    const T* const g = elements<T>(gradients);
    const std::vector<Chunk> chunks = cut(segments);
    std::vector<double> w_squares(chunks.size()), u_squares(chunks.size());

    pool_.run(static_cast<Dim>(chunks.size()), [&](Dim index, int) {
      const Chunk& chunk = chunks[static_cast<std::size_t>(index)];
      const Lanes<T> decay(static_cast<T>(chunk.segment->weight_decay)), step(static_cast<T>(-update.learning_rate));
      Lanes<T> w_sum(T(0)), u_sum(T(0));
      for_lanes<T>(chunk.end - chunk.begin, [&](Dim i, Dim n) {
        i += chunk.begin;
        const auto weight = Lanes<T>::load(w + i, n), gradient = Lanes<T>::load(g + i, n) * f.clip;
        const auto first = f.first_moment(Lanes<T>::load(m + i, n), gradient);
        const auto second = f.second_moment(Lanes<T>::load(v + i, n), gradient);
        const auto u = f.direction(first, second, weight, decay);
        first.store(m + i, n);
        second.store(v + i, n);
        if (chunk.segment->trust_ratio) {
          w_sum = fma(weight, weight, w_sum);
          u_sum = fma(u, u, u_sum);  // 0 in the padding: 0 / (0 + ε)
        } else {
          fma(step, u, weight).store(w + i, n);
        }
      });
      w_squares[static_cast<std::size_t>(index)] = static_cast<double>(cpu::sum(w_sum));
      u_squares[static_cast<std::size_t>(index)] = static_cast<double>(cpu::sum(u_sum));
    });

    // LAMB: the ratio of each segment, then its step, from the moments just stored.
    std::vector<double> rates(chunks.size(), 0);
    for (std::size_t begin = 0, end; begin < chunks.size(); begin = end) {
      for (end = begin; end < chunks.size() && chunks[end].segment == chunks[begin].segment;) ++end;
      if (!chunks[begin].segment->trust_ratio) continue;
      const double w_norm = std::sqrt(tree_sum(&w_squares[begin], static_cast<Dim>(end - begin)));
      const double u_norm = std::sqrt(tree_sum(&u_squares[begin], static_cast<Dim>(end - begin)));
      const double ratio = w_norm > 0 && u_norm > 0 ? w_norm / u_norm : 1;
      std::fill(rates.begin() + static_cast<std::ptrdiff_t>(begin), rates.begin() + static_cast<std::ptrdiff_t>(end), ratio * update.learning_rate);
    }
    pool_.run(static_cast<Dim>(chunks.size()), [&](Dim index, int) {
      const Chunk& chunk = chunks[static_cast<std::size_t>(index)];
      if (!chunk.segment->trust_ratio) return;
      const Lanes<T> decay(static_cast<T>(chunk.segment->weight_decay)), step(static_cast<T>(-rates[static_cast<std::size_t>(index)]));
      for_lanes<T>(chunk.end - chunk.begin, [&](Dim i, Dim n) {
        i += chunk.begin;
        const auto weight = Lanes<T>::load(w + i, n);
        fma(step, f.direction(Lanes<T>::load(m + i, n), Lanes<T>::load(v + i, n), weight, decay), weight).store(w + i, n);
      });
    });
  });
}

}  // namespace bertrand::cpu
