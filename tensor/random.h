// Counter-based random numbers: a draw is a pure function of (key, counter), never of order, thread or rank.
// Philox4x32-10 of Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3".
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

namespace bertrand {

inline constexpr std::uint32_t kPhiloxMultiplier0 = 0xD2511F53u, kPhiloxMultiplier1 = 0xCD9E8D57u;
/// The keys of the ten rounds; for kernels that draw many times with one key.
using PhiloxKeys = std::array<std::array<std::uint32_t, 2>, 10>;
constexpr PhiloxKeys philox_keys(std::uint64_t key) {
  PhiloxKeys keys{};
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (auto& of_round : keys) {
    of_round = {k0, k1};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return keys;
}

constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, const PhiloxKeys& keys) {
  for (const auto& key : keys) {
    const std::uint64_t p0 = std::uint64_t{kPhiloxMultiplier0} * counter[0],
                        p1 = std::uint64_t{kPhiloxMultiplier1} * counter[2];
    counter = {static_cast<std::uint32_t>(p1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(p1),
               static_cast<std::uint32_t>(p0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(p0)};
  }
  return counter;
}
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
  return philox4x32(counter, philox_keys(key));
}

/// Mixes two words into one (the finaliser of SplitMix64, Steele et al. 2014). Not symmetric.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a + 0x9E3779B97F4A7C15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// A name as a number, the same on every machine (FNV-1a, then mixed).
std::uint64_t hash_name(std::string_view name);

/// A stream of draws from one key: draw number i is a function of (key, i).
class Random {
 public:
  explicit Random(std::uint64_t key) : key_(key) {}
  /// The stream from number `drawn` on.
  Random(std::uint64_t key, std::uint64_t drawn);
  /// How many numbers next() has given, also to the other draws. What normal() has left over is not in it.
  std::uint64_t drawn() const { return 4 * block_ - static_cast<std::uint64_t>(left_); }

  std::uint32_t next();                      ///< 32 uniform bits
  double uniform();                          ///< lies in [0, 1), 53 bits
  std::uint32_t below(std::uint32_t bound);  ///< uniform in [0, bound) without bias; bound > 0
  double normal();                           ///< standard normal (Box and Muller 1958); every second one is left over
  /// Normal re-drawn beyond two standard deviations, as TensorFlow's truncated_normal.
  double truncated_normal(double standard_deviation);

  template <class Range>
  void shuffle(Range& range) {  ///< Fisher and Yates; fewer than 2^32 elements
    for (std::size_t i = range.size(); i > 1; --i) std::swap(range[i - 1], range[below(static_cast<std::uint32_t>(i))]);
  }

 private:
  std::uint64_t key_;
  std::uint64_t block_ = 0;
  std::array<std::uint32_t, 4> buffer_{};
  int left_ = 0;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace bertrand
