#include "tensor/random.h"

#include <cmath>

namespace bertrand {

std::uint64_t hash_name(std::string_view name) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(h, name.size());
}

Random::Random(std::uint64_t key, std::uint64_t drawn) : key_(key), block_(drawn / 4) {
  for (std::uint64_t i = 0; i < drawn % 4; ++i) next();
}

std::uint32_t Random::next() {
  if (left_ == 0) {
    buffer_ = philox4x32({static_cast<std::uint32_t>(block_), static_cast<std::uint32_t>(block_ >> 32), 0, 0}, key_);
    ++block_;
    left_ = 4;
  }
  return buffer_[static_cast<std::size_t>(4 - left_--)];
}

double Random::uniform() {
  const std::uint64_t high = next() >> 5, low = next() >> 6;
  return static_cast<double>(high << 26 | low) * 0x1p-53;
}

std::uint32_t Random::below(std::uint32_t bound) {
  // Lemire 2019, "Fast Random Integer Generation in an Interval": re-draw if the low half falls into the uneven
  // rest.
  std::uint64_t product = std::uint64_t{next()} * bound;
  const std::uint32_t rest = (0u - bound) % bound;
  while (static_cast<std::uint32_t>(product) < rest) product = std::uint64_t{next()} * bound;
  return static_cast<std::uint32_t>(product >> 32);
}

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const double radius = std::sqrt(-2 * std::log(1 - uniform())), angle = 6.283185307179586 * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

double Random::truncated_normal(double standard_deviation) {
  double z = normal();
  while (std::abs(z) > 2) z = normal();
  return z * standard_deviation;
}

}  // namespace bertrand
